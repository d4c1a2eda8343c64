(function_definition name: (_) @name body: (_) @body) @function

; bats, as mend.py hands it over: `@test "name";{ … }`, a command and a block
((command name: (command_name) @_test . argument: (_) @name) @test
  .
  (compound_statement) @body
  (#eq? @_test "@test"))
