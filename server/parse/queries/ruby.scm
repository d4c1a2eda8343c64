(module
  body: (body_statement
    [
      (method name: (_) @name body: (_)? @body)
      (singleton_method name: (_) @name body: (_)? @body)
    ] @method))
(method name: (_) @name body: (_)? @body) @function
(singleton_method name: (_) @name body: (_)? @body) @function

(class name: (_) @name body: (_)? @body) @class
(module name: (_) @name body: (_)? @body) @namespace

; Point = Struct.new(:x, :y) do … end
(assignment
  left: (constant) @name
  right: (call
    receiver: (constant) @_class
    method: (identifier) @_new
    block: (_) @body)
  (#any-of? @_class "Struct" "Class" "Data")
  (#any-of? @_new "new" "define")) @class
(assignment
  left: (constant) @name
  right: (call
    receiver: (constant) @_class
    method: (identifier) @_new
    block: (_) @body)
  (#eq? @_class "Module")
  (#eq? @_new "new")) @namespace

; Blocks that get their name from where they are put.
(assignment
  left: (_) @name
  right: (lambda body: (_) @body)) @lambda
(assignment
  left: (_) @name
  right: (call
    method: (identifier) @_maker
    block: (_) @body)
  (#any-of? @_maker "lambda" "proc")) @lambda
(call
  method: (identifier) @_test
  arguments: (argument_list . (_) @name)
  block: (_) @body
  (#any-of? @_test
    "describe" "context" "it" "specify" "feature" "scenario" "test" "should" "shared_examples")) @test
(call
  method: (identifier) @_method
  arguments: (argument_list
    . [
      (string) @name
      (simple_symbol) @name
      (pair key: [(string) (simple_symbol)] @name)
    ])
  block: (do_block) @body
  (#not-match? @_method "^(new|define)$")) @lambda
