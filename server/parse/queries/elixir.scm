; Modules
((call
  target: (identifier) @_def
  (arguments . [(alias) (atom)] @name)
  (do_block) @body) @namespace
  (#eq? @_def "defmodule"))
((call
  target: (identifier) @_def
  (arguments . (alias) @name)
  (do_block) @body) @interface
  (#eq? @_def "defprotocol"))
; `defimpl Sized, for: BitString`
((call
  target: (identifier) @_def
  (arguments . (alias) @name (keywords . (pair value: (_) @name) .)? .)
  (do_block) @body) @impl
  (#eq? @_def "defimpl"))
((call target: (identifier) @name (arguments)) @struct
  (#any-of? @name "defstruct" "defexception"))

; Functions: def f(x), def f, def f(x) when g, def unquote(f)(x); neighbours of one name are its clauses.
((call
  target: (identifier) @_def
  (arguments
    .
    [
      (identifier) @name
      (call target: [(identifier) (call)] @name)
      (binary_operator left: [(identifier) @name (call target: [(identifier) (call)] @name)] operator: "when")
    ])
  (do_block)? @body) @function
  (#any-of? @_def "def" "defp" "defdelegate" "defn" "defnp"))
((call
  target: (identifier) @_def
  (arguments
    .
    [
      (identifier) @name
      (call target: [(identifier) (call)] @name)
      (binary_operator left: [(identifier) @name (call target: [(identifier) (call)] @name)] operator: "when")
    ])
  (do_block)? @body) @macro
  (#any-of? @_def "defmacro" "defmacrop" "defguard" "defguardp"))
; def a <~> b, def a <~> b when g
((call
  target: (identifier) @_def
  (arguments
    .
    [
      (binary_operator operator: _ @name)
      (binary_operator left: (binary_operator operator: _ @name) operator: "when")
    ])
  (do_block)? @body) @function
  (#any-of? @_def "def" "defp")
  (#not-eq? @name "when"))

; Types, and the functions that a behaviour asks for
((unary_operator
  operator: "@"
  operand: (call
    target: (identifier) @_type
    (arguments
      (binary_operator
        left: [(identifier) @name (call target: (identifier) @name)]
        operator: "::")))) @type
  (#any-of? @_type "type" "typep" "opaque"))
((unary_operator
  operator: "@"
  operand: (call
    target: (identifier) @_type
    (arguments
      (binary_operator
        left: [(identifier) @name (call target: (identifier) @name)]
        operator: "::")))) @function
  (#any-of? @_type "callback" "macrocallback"))

; ExUnit
((call
  target: (identifier) @_test
  (arguments . (string) @name)
  (do_block)? @body) @test
  (#any-of? @_test "test" "property"))
((call
  target: (identifier) @_describe
  (arguments . (string) @name)
  (do_block) @body) @namespace
  (#eq? @_describe "describe"))

; Attributes belong to the definition below them, and `@doc` says what it does.
((unary_operator operator: "@" operand: (call target: (identifier) @_attribute)) @skip
  (#any-of? @_attribute
    "doc" "typedoc" "spec" "impl" "deprecated" "since" "decorate" "tag" "describetag" "dialyzer" "enforce_keys"
    "derive"))
((unary_operator
  operator: "@"
  operand: (call target: (identifier) @_doc (arguments [(string) @doc (sigil (quoted_content) @doc)]))) @skip
  (#any-of? @_doc "doc" "typedoc"))
((call
  target: (identifier) @_def
  (arguments . [(alias) (atom)] @name)
  (do_block
    (unary_operator
      operator: "@"
      operand: (call
        target: (identifier) @_doc
        (arguments [(string) @doc (sigil (quoted_content) @doc)]))))) @namespace
  (#any-of? @_def "defmodule" "defprotocol")
  (#eq? @_doc "moduledoc"))
