(function_definition
  name: (identifier) @name
  body: (block . (expression_statement (string) @doc)?) @body) @function

(class_definition
  name: (identifier) @name
  body: (block . (expression_statement (string) @doc)?) @body) @class

(decorated_definition
  definition: (function_definition name: (identifier) @name)) @function

(decorated_definition
  definition: (class_definition name: (identifier) @name)) @class

(assignment
  left: (_) @name
  right: (lambda body: (_) @body)) @lambda

(type_alias_statement (type) @name) @type

(module . (comment)* . (expression_statement (string) @doc))
