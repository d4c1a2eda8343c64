; Also the base of C++'s query. @declarator: the engine finds the name in it, and the scopes before it.

(function_definition declarator: (_) @declarator body: (_) @body) @function

(struct_specifier name: (_) @declarator body: (_) @body) @struct
(union_specifier name: (_) @declarator body: (_) @body) @struct
(enum_specifier name: (_) @declarator body: (_) @body) @enum

(type_definition type: (struct_specifier name: (_) @declarator body: (_))) @struct
(type_definition type: (union_specifier name: (_) @declarator body: (_))) @struct
(type_definition type: (enum_specifier name: (_) @declarator body: (_))) @enum
(type_definition type: (struct_specifier !name body: (_) @body) declarator: (_) @declarator) @struct
(type_definition type: (union_specifier !name body: (_) @body) declarator: (_) @declarator) @struct
(type_definition type: (enum_specifier !name body: (_) @body) declarator: (_) @declarator) @enum

(preproc_function_def name: (_) @name value: (_)? @body) @macro
