(function_item name: (_) @name body: (_) @body) @function
(trait_item body: (declaration_list (function_signature_item name: (_) @name) @method))

(struct_item name: (_) @name body: (_)? @body) @struct
(union_item name: (_) @name body: (_) @body) @struct
(enum_item name: (_) @name body: (_) @body) @enum
(trait_item name: (_) @name body: (_) @body) @trait
(impl_item type: (_) @name body: (_) @body) @impl
(mod_item name: (_) @name body: (_) @body) @namespace
(macro_definition name: (_) @name . (macro_rule) @body) @macro
(source_file (type_item name: (_) @name type: (_) @body) @type)
(mod_item body: (declaration_list (type_item name: (_) @name type: (_) @body) @type))

(let_declaration
  pattern: (identifier) @name
  value: (closure_expression body: (_) @body)) @lambda
(let_declaration
  pattern: (mut_pattern (identifier) @name)
  value: (closure_expression body: (_) @body)) @lambda
