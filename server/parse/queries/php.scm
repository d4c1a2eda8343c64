(function_definition name: (_) @name body: (_) @body) @function
(method_declaration name: (_) @name body: (_)? @body) @method

(class_declaration name: (_) @name body: (_) @body) @class
(interface_declaration name: (_) @name body: (_) @body) @interface
(trait_declaration name: (_) @name body: (_) @body) @trait
(enum_declaration name: (_) @name body: (_) @body) @enum
(anonymous_class body: (_) @body) @class
(namespace_definition name: (_) @name body: (_) @body) @namespace

; Functions that get their name from where they are put.
(assignment_expression
  left: (_) @name
  right: [
    (anonymous_function body: (_) @body)
    (arrow_function body: (_) @body)
  ]) @lambda
(array_element_initializer
  . (_) @name
  . [
    (anonymous_function body: (_) @body)
    (arrow_function body: (_) @body)
  ] .) @lambda
(function_call_expression
  function: (name) @_test
  arguments: (arguments
    . (argument [(string) (encapsed_string)] @name)
    . (argument [
      (anonymous_function body: (_) @body)
      (arrow_function body: (_) @body)
    ]))
  (#any-of? @_test "describe" "it" "test")) @test
([
  (function_call_expression
    arguments: (arguments
      . (argument [(string) (encapsed_string)] @name)
      . (argument (anonymous_function body: (_) @body))))
  (scoped_call_expression
    arguments: (arguments
      . (argument [(string) (encapsed_string)] @name)
      . (argument (anonymous_function body: (_) @body))))
  (member_call_expression
    arguments: (arguments
      . (argument [(string) (encapsed_string)] @name)
      . (argument (anonymous_function body: (_) @body))))
] @lambda)
