; Added before ECMAScript's query: of two patterns for one node the earlier counts.

(field_definition
  property: (_) @name
  value: [
    (arrow_function body: (_) @body)
    (function_expression body: (_) @body)
  ]) @lambda
