; Where two patterns match one definition, the first one's kind counts.

; Types
(class_declaration "class" name: (_) @name (enum_class_body) @body) @enum
(class_declaration "class" name: (_) @name (class_body)? @body) @class
(class_declaration "interface" name: (_) @name (class_body)? @body) @interface
(object_declaration name: (_) @name (class_body)? @body) @object
(companion_object name: (_) @name (class_body)? @body) @object
(companion_object "companion" @name !name (class_body)? @body) @object
(enum_entry (identifier) @name (class_body) @body) @object
(type_alias type: (_) @name) @type

; The members of an object without a name
(object_literal (class_body (function_declaration name: (_) @name (function_body)? @body) @method))

; Functions; the type in front of an extension's name is its container.
(function_declaration name: (_) @name (function_body)? @body) @function
(function_declaration
  [
    (user_type) @container
    (nullable_type (user_type) @container)
  ]
  .
  "."
  .
  name: (_) @name) @function
(secondary_constructor "constructor" @name (block)? @body) @constructor
(anonymous_initializer "init" @name (block) @body) @constructor

; Properties that hold code
(property_declaration (variable_declaration . (identifier) @name) (getter (function_body)) @body) @property
(property_declaration (variable_declaration . (identifier) @name) (setter (function_body)) @body) @property
((property_declaration
  (variable_declaration . (identifier) @name)
  (property_delegate (call_expression (annotated_lambda))) @body) @property
  (#match? @property "\n"))
(property_declaration
  [
    (user_type) @container
    (nullable_type (user_type) @container)
  ]
  .
  "."
  .
  (variable_declaration . (identifier) @name)
  (getter)) @property

; Lambdas, anonymous functions and objects bound to a name
(property_declaration
  (variable_declaration . (identifier) @name)
  [(lambda_literal) (anonymous_function)] @body) @lambda
((property_declaration
  (variable_declaration . (identifier) @name)
  (object_literal (class_body) @body)) @object
  (#match? @object "\n"))

; What the grammar makes of `@JvmName("sum")` above a function
(annotated_expression . (annotation) . (parenthesized_expression) .) @skip

; What it makes of a type without a body below an annotation with arguments: `annotation` as an operand of `class`
((infix_expression . (identifier) . (identifier) @_class . (identifier) @name .) @class
  (#eq? @_class "class"))
((infix_expression . (identifier) . (identifier) @_interface . (identifier) @name .) @interface
  (#eq? @_interface "interface"))
