; A function is its signature and all of its equations: the engine joins neighbours of one name.

(declarations
  [
    (signature name: [(variable) @name (prefix_id (_) @name)])
    (signature names: (binding_list . name: [(variable) @name (prefix_id (_) @name)]))
    (foreign_import signature: (signature name: (_) @name))
    (pattern_synonym (signature synonym: (_) @name))
  ] @function)
(declarations
  [
    (function name: [(variable) @name (prefix_id (_) @name)] match: (_) @body)
    (function (infix operator: [(operator) @name (infix_id (_) @name)]) match: (_) @body)
    (bind name: [(variable) @name (prefix_id (_) @name)] match: (_) @body)
    (pattern_synonym (equation synonym: (apply function: (_) @name)))
    (pattern_synonym (equation synonym: (constructor) @name))
  ] @function)

; Types
(data_type name: (_) @name constructors: (_)? @body) @type
(newtype name: (_) @name constructor: (_) @body) @type
(type_synonym name: (_) @name) @type
(type_family name: (_) @name closed_family: (_)? @body) @type
(data_family name: (_) @name) @type
(class name: (_) @name declarations: (_)? @body) @interface
; `instance Store IO`
(instance name: (_) @name patterns: (_)? @name declarations: (_)? @body) @impl
(deriving_instance name: (_) @name patterns: (_)? @name) @impl

; Members
(class_declarations
  [
    (signature name: [(variable) @name (prefix_id (_) @name)])
    (signature names: (binding_list . name: [(variable) @name (prefix_id (_) @name)]))
  ] @function)
([
  (class_declarations
    [
      (function name: [(variable) @name (prefix_id (_) @name)] match: (_) @body)
      (function (infix operator: [(operator) @name (infix_id (_) @name)]) match: (_) @body)
      (bind name: [(variable) @name (prefix_id (_) @name)] match: (_) @body)
    ] @function)
  (instance_declarations
    [
      (function name: [(variable) @name (prefix_id (_) @name)] match: (_) @body)
      (function (infix operator: [(operator) @name (infix_id (_) @name)]) match: (_) @body)
      (bind name: [(variable) @name (prefix_id (_) @name)] match: (_) @body)
    ] @function)
])
