; A function that returns a type is that type.
(function_declaration
  name: (_) @name
  body: (block (expression_statement (return_expression [(struct_declaration) (union_declaration) (enum_declaration) (opaque_declaration)]))) @body) @struct
(function_declaration name: (_) @name body: (_)? @body) @function

; Types
(variable_declaration (identifier) @name (struct_declaration "{" @body)) @struct
(variable_declaration (identifier) @name (opaque_declaration "{" @body)) @struct
(variable_declaration (identifier) @name (union_declaration "{" @body)) @struct
(variable_declaration (identifier) @name (enum_declaration "{" @body)) @enum
(variable_declaration (identifier) @name (error_set_declaration "{" @body)) @enum

; Tests
(test_declaration (string (string_content) @name) (block) @body) @test
(test_declaration (identifier) @name (block) @body) @test
(test_declaration . "test" @name . (block) @body) @test
