; Where two patterns match one definition, the first one's kind counts.

; Types
(class_definition name: (_) @name body: (_)? @body) @class
(trait_definition name: (_) @name body: (_)? @body) @trait
(object_definition name: (_) @name body: (_)? @body) @object
(package_object name: (_) @name body: (_) @body) @object
(enum_definition name: (_) @name body: (_) @body) @enum
(type_definition name: (_) @name) @type

; A given without a name goes by its type.
(given_definition name: (_) @name body: (_)? @body) @impl
(given_definition !name return_type: (_) @name body: (_)? @body) @impl

; An extension goes by the type that it extends. One that starts its only method on its own first line is that
; method, with the type as container.
((extension_definition
  parameters: (parameters (parameter type: (_) @name))
  .
  (_) @body) @extension
  (#not-match? @extension "^extension[^\n]*\\bdef\\b"))
((extension_definition
  parameters: (parameters (parameter type: (_) @container))
  body: [(function_definition name: (_) @name) (function_declaration name: (_) @name)] @method) @_extension
  (#match? @_extension "^extension[^\n]*\\bdef\\b"))

; The members of a class without a name
(instance_expression (template_body (function_definition name: (_) @name body: (_)? @body) @method))

; Functions
(function_definition name: (_) @name body: (_)? @body) @function
(function_declaration name: (_) @name) @function

; Functions and instances bound to a name
(val_definition
  pattern: (identifier) @name
  value: [(lambda_expression) (case_block) (block . (lambda_expression) .)] @body) @lambda
((val_definition
  pattern: (identifier) @name
  value: [
    (instance_expression (template_body) @body)
    (indented_block . (instance_expression (template_body) @body) .)
  ]) @object
  (#match? @object "\n"))

; A value that a block computes
((val_definition pattern: (identifier) @name value: [(block) (indented_block)] @body) @property
  (#match? @property "\n"))

; munit and ScalaTest
((call_expression
  function: (call_expression
    function: (identifier) @_test
    arguments: (arguments . (string) @name))
  arguments: (block) @body) @test
  (#any-of? @_test "test" "property"))
((infix_expression
  left: (infix_expression left: (_) operator: (_) right: (string)) @name
  operator: (identifier) @_in
  right: (block) @body) @test
  (#eq? @_in "in"))
((infix_expression left: (string) @name operator: (identifier) @_in right: (block) @body) @test
  (#any-of? @_in "in" "should"))
