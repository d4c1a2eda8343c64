; function f, local function f
(function_declaration name: (identifier) @name body: (_)? @body) @function
; function M.f
(function_declaration
  name: (dot_index_expression table: (_) @container field: (_) @name)
  body: (_)? @body) @function
; function M:f
(function_declaration
  name: (method_index_expression table: (_) @container method: (_) @name)
  body: (_)? @body) @method

; f = function, local f = function
(variable_declaration
  (assignment_statement
    (variable_list . name: (identifier) @name)
    (expression_list . value: (function_definition body: (_)? @body)))) @function
(chunk
  (assignment_statement
    (variable_list . name: (identifier) @name)
    (expression_list . value: (function_definition body: (_)? @body))) @function)
(block
  (assignment_statement
    (variable_list . name: (identifier) @name)
    (expression_list . value: (function_definition body: (_)? @body))) @function)
; M.f = function
(assignment_statement
  (variable_list . name: (dot_index_expression table: (_) @container field: (_) @name))
  (expression_list . value: (function_definition body: (_)? @body))) @function
; M["f"] = function
(assignment_statement
  (variable_list . name: (bracket_index_expression table: (_) @container field: (string content: (_) @name)))
  (expression_list . value: (function_definition body: (_)? @body))) @function

; f = function inside a table
(field name: (identifier) @name value: (function_definition body: (_)? @body)) @lambda
(field name: (string content: (_) @name) value: (function_definition body: (_)? @body)) @lambda

; Tables of functions
((variable_declaration
  (assignment_statement
    (variable_list . name: (identifier) @name)
    (expression_list . value: (table_constructor (field value: (function_definition))) @body))) @object
  (#match? @object "\n"))
((assignment_statement
  (variable_list . name: (identifier) @name)
  (expression_list . value: (table_constructor (field value: (function_definition))) @body)) @object
  (#match? @object "\n"))
((assignment_statement
  (variable_list . name: (dot_index_expression table: (_) @container field: (_) @name))
  (expression_list . value: (table_constructor (field value: (function_definition))) @body)) @object
  (#match? @object "\n"))
((field name: (identifier) @name value: (table_constructor (field value: (function_definition))) @body) @object
  (#match? @object "\n"))

; busted
((function_call
  name: (identifier) @_it
  arguments: (arguments . (string content: (_) @name) . (function_definition body: (_)? @body))) @test
  (#any-of? @_it "it" "test" "pending"))
((function_call
  name: (identifier) @_describe
  arguments: (arguments . (string content: (_) @name) . (function_definition body: (_)? @body))) @namespace
  (#any-of? @_describe "describe" "context"))

; A table that LuaCATS calls a class
((comment content: (_) @_above)
  .
  (variable_declaration (assignment_statement (variable_list . name: (identifier) @name))) @class
  (#match? @_above "^-@(class|field)\\b"))
