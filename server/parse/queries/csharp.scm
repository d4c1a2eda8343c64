; Where two patterns match one definition, the first one's kind counts.

; Types
(class_declaration name: (_) @name body: (_)? @body) @class
(struct_declaration name: (_) @name body: (_)? @body) @struct
(record_declaration "struct" name: (_) @name body: (_)? @body) @struct
(record_declaration name: (_) @name body: (_)? @body) @class
(interface_declaration name: (_) @name body: (_)? @body) @interface
(enum_declaration name: (_) @name body: (_)? @body) @enum
(delegate_declaration name: (_) @name) @type
(namespace_declaration name: (_) @name body: (_) @body) @namespace
(file_scoped_namespace_declaration name: (_) @name) @namespace @scope

; C# 14's `extension(string text) { … }`, which the grammar takes for a constructor of that name
((constructor_declaration
  name: (_) @_extension
  parameters: (parameter_list . (parameter type: (_) @name))
  body: (_) @body) @extension
  (#eq? @_extension "extension"))

; Members
(method_declaration name: (_) @name body: (_)? @body) @method
((constructor_declaration name: (_) @name body: (_)? @body) @constructor
  (#not-eq? @name "extension"))
(destructor_declaration "~" @name name: (_) @name body: (_)? @body) @method
(operator_declaration "operator" @name operator: _ @name body: (_)? @body) @method
(conversion_operator_declaration "operator" @name type: (_) @name body: (_)? @body) @method
(indexer_declaration "this" @name accessors: (_)? @body) @property
(indexer_declaration "this" @name value: (_)? @body) @property
(event_declaration name: (_) @name accessors: (_) @body) @property

; A property is a unit when it holds code of several lines; `{ get; set; }` stays with its type.
((property_declaration
  name: (_) @name
  accessors: (accessor_list (accessor_declaration body: (_))) @body) @property
  (#match? @property "\n"))
((property_declaration name: (_) @name value: (arrow_expression_clause) @body) @property
  (#match? @property "\n"))

; Functions inside functions, and lambdas bound to a name
(local_function_statement name: (_) @name body: (_)? @body) @function
(field_declaration
  (variable_declaration
    (variable_declarator name: (_) @name [(lambda_expression) (anonymous_method_expression)] @body))) @lambda
(property_declaration name: (_) @name value: [(lambda_expression) (anonymous_method_expression)] @body) @lambda
(local_declaration_statement
  (variable_declaration
    (variable_declarator name: (_) @name [(lambda_expression) (anonymous_method_expression)] @body))) @lambda
