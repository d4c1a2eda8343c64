(class_declaration name: (_) @name body: (_) @body) @class
(record_declaration name: (_) @name body: (_) @body) @class
(interface_declaration name: (_) @name body: (_) @body) @interface
(annotation_type_declaration name: (_) @name body: (_) @body) @interface
(enum_declaration name: (_) @name body: (_) @body) @enum
(enum_constant name: (_) @name body: (_) @body) @object

(method_declaration name: (_) @name body: (_)? @body) @method
(constructor_declaration name: (_) @name body: (_) @body) @constructor
(compact_constructor_declaration name: (_) @name body: (_) @body) @constructor

(field_declaration
  declarator: (variable_declarator
    name: (_) @name
    value: (lambda_expression body: (_) @body))) @lambda
(local_variable_declaration
  declarator: (variable_declarator
    name: (_) @name
    value: (lambda_expression body: (_) @body))) @lambda
