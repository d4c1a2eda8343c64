; Types
(class_declaration declaration_kind: ["class" "actor"] name: (_) @name body: (_) @body) @class
(class_declaration declaration_kind: "struct" name: (_) @name body: (_) @body) @struct
(class_declaration declaration_kind: "enum" name: (_) @name body: (_) @body) @enum
(class_declaration declaration_kind: "extension" name: (_) @name body: (_) @body) @extension
(protocol_declaration name: (_) @name body: (_) @body) @interface
(typealias_declaration name: (type_identifier) @name) @type
(macro_declaration . (modifiers)? . "macro" . (simple_identifier) @name) @macro

; Functions. The grammar calls the return type `name` too, so the first one counts.
(function_declaration "func" . name: _ @name body: (_)? @body) @function
(protocol_function_declaration "func" . name: _ @name) @function
(init_declaration "init" @name body: (_)? @body) @constructor
(deinit_declaration "deinit" @name body: (_) @body) @method
(subscript_declaration "subscript" @name (computed_property) @body) @property

; Properties that hold code
(property_declaration
  name: (pattern bound_identifier: (_) @name)
  computed_value: (computed_property) @body) @property
(property_declaration
  name: (pattern bound_identifier: (_) @name)
  (willset_didset_block) @body) @property

; Closures bound to a name, run once or kept
((property_declaration
  name: (pattern bound_identifier: (_) @name)
  value: (call_expression . (lambda_literal) @body)) @property
  (#match? @property "\n"))
(property_declaration
  name: (pattern bound_identifier: (_) @name)
  value: (lambda_literal) @body) @lambda
