; Added before ECMAScript's query.

(abstract_class_declaration name: (_) @name body: (_) @body) @class
(interface_declaration name: (_) @name body: (_) @body) @interface
(enum_declaration name: (_) @name body: (_) @body) @enum
(type_alias_declaration name: (_) @name value: (_) @body) @type
(internal_module name: (_) @name body: (_) @body) @namespace
(module name: (_) @name body: (_) @body) @namespace
(function_signature name: (_) @name) @function
(abstract_method_signature name: (_) @name) @method

(public_field_definition
  name: (_) @name
  value: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
  ]) @lambda

(export_statement declaration: (class_declaration name: (_) @name)) @class
(export_statement declaration: (abstract_class_declaration name: (_) @name)) @class
