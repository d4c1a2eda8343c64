if vim.g.loaded_meaning then
  return
end
vim.g.loaded_meaning = true

vim.api.nvim_create_user_command("Meaning", function(command)
  require("meaning").search(command.args, { quickfix = command.bang })
end, { nargs = "*", bang = true, desc = "Find code by meaning (!: into the quickfix list)" })

vim.api.nvim_create_user_command("MeaningSimilar", function(command)
  require("meaning").similar({ quickfix = command.bang })
end, { bang = true, desc = "Find code that does the same as the function at the cursor (!: into the quickfix list)" })
