; Added before C's query: of two patterns for one node the earlier counts.

(class_specifier name: (_) @declarator body: (_) @body) @class
(namespace_definition name: (_) @name body: (_) @body) @namespace
(concept_definition name: (_) @name) @type

(template_declaration (function_definition declarator: (_) @declarator)) @function
(template_declaration (template_declaration (function_definition declarator: (_) @declarator))) @function
(template_declaration (class_specifier name: (_) @declarator body: (_))) @class
(template_declaration (struct_specifier name: (_) @declarator body: (_))) @struct
(template_declaration (union_specifier name: (_) @declarator body: (_))) @struct
(template_declaration (concept_definition name: (_) @name)) @type

(declaration
  declarator: (init_declarator
    declarator: (identifier) @name
    value: (lambda_expression body: (_) @body))) @lambda

; TEST(Suite, Name) { … } reads as a function without a type.
((function_definition
  !type
  declarator: (function_declarator
    declarator: (identifier) @_macro
    parameters: (parameter_list
      . (parameter_declaration type: (_) @container)
      . (parameter_declaration type: (_) @name)))
  body: (_) @body) @test
  (#match? @_macro "^(TYPED_)?TEST(_[A-Z]+)?$"))
