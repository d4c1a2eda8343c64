; What JavaScript and TypeScript share: only nodes that both grammars have.

(function_declaration name: (_) @name body: (_) @body) @function
(generator_function_declaration name: (_) @name body: (_) @body) @function
(function_expression name: (_) @name body: (_) @body) @function
(generator_function name: (_) @name body: (_) @body) @function

(class_declaration name: (_) @name body: (_) @body) @class
(class name: (_) @name body: (_) @body) @class
(variable_declarator name: (identifier) @name value: (class !name body: (_) @body)) @class

(method_definition name: (_) @name body: (_) @body) @method

; Functions that get their name from where they are put.
(lexical_declaration
  (variable_declarator
    name: (identifier) @name
    value: [
      (arrow_function body: (_) @body)
      (function_expression !name body: (_) @body)
      (generator_function !name body: (_) @body)
    ])) @lambda
(variable_declaration
  (variable_declarator
    name: (identifier) @name
    value: [
      (arrow_function body: (_) @body)
      (function_expression !name body: (_) @body)
      (generator_function !name body: (_) @body)
    ])) @lambda
(lexical_declaration
  (variable_declarator
    name: (identifier) @name
    value: (call_expression
      arguments: (arguments [
        (arrow_function body: (_) @body)
        (function_expression body: (_) @body)
      ])))) @lambda
(assignment_expression
  left: [
    (identifier) @name
    (member_expression object: (_) @container property: (_) @name)
  ]
  right: [
    (arrow_function body: (_) @body)
    (function_expression !name body: (_) @body)
    (generator_function !name body: (_) @body)
  ]) @lambda
(pair
  key: (_) @name
  value: [
    (arrow_function body: (_) @body)
    (function_expression !name body: (_) @body)
    (generator_function !name body: (_) @body)
  ]) @lambda
; An object of functions, a module in all but name.
(lexical_declaration
  (variable_declarator
    name: (identifier) @name
    value: (object [
      (method_definition)
      (pair value: [(arrow_function) (function_expression)])
    ]) @body)) @object
(variable_declaration
  (variable_declarator
    name: (identifier) @name
    value: (object [
      (method_definition)
      (pair value: [(arrow_function) (function_expression)])
    ]) @body)) @object

(export_statement
  "default" @name
  value: [
    (arrow_function body: (_) @body)
    (function_expression !name body: (_) @body)
    (class !name body: (_) @body)
  ]) @function

; describe("…", () => { it("…", () => {}) })
(call_expression
  function: [
    (identifier) @_call
    (member_expression object: (identifier) @_call)
  ]
  arguments: (arguments . [(string) (template_string)] @name [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
  ])
  (#any-of? @_call
    "describe" "context" "suite" "it" "test" "specify")) @test

; app.get("/users", async (request, response) => { … })
(call_expression
  arguments: (arguments . [(string) (template_string)] @name . [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
  ])) @lambda
