(function_declaration name: (_) @name body: (_)? @body) @function

(method_declaration
  receiver: (parameter_list
    (parameter_declaration
      type: [
        (type_identifier) @container
        (pointer_type (type_identifier) @container)
        (generic_type type: (_) @container)
        (pointer_type (generic_type type: (_) @container))
      ]))
  name: (_) @name
  body: (_)? @body) @method

; @signature: a declaration of one type begins with `type`, one in parentheses with its name.
(type_declaration
  . (type_spec name: (_) @name type: (struct_type (field_declaration_list) @body)) .) @struct @signature
(type_declaration
  . (type_spec name: (_) @name type: (interface_type "{" @body)) .) @interface @signature
(type_declaration
  . [
    (type_spec name: (_) @name)
    (type_alias name: (_) @name)
  ] .) @type @signature
(type_spec name: (_) @name type: (struct_type (field_declaration_list) @body)) @struct
(type_spec name: (_) @name type: (interface_type "{" @body)) @interface
(type_spec name: (_) @name) @type
(type_alias name: (_) @name) @type

(short_var_declaration
  left: (expression_list . (identifier) @name .)
  right: (expression_list . (func_literal body: (_) @body) .)) @lambda
(var_spec
  name: (_) @name
  value: (expression_list . (func_literal body: (_) @body) .)) @lambda
(var_declaration
  . (var_spec
    name: (_) @name
    value: (expression_list . (func_literal body: (_) @body) .)) .) @lambda
(assignment_statement
  left: (expression_list . (_) @name .)
  right: (expression_list . (func_literal body: (_) @body) .)) @lambda
(keyed_element
  . (literal_element) @name
  . (literal_element (func_literal body: (_) @body))) @lambda
