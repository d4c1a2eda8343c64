-- Does what a user does, in a Neovim that has the plugin; writes what was seen as JSON to $OUT.
local out = {}

local function wait(what, done)
  assert(vim.wait(60000, done, 20), "waited in vain for " .. what)
end

-- What vim.ui.select and vim.notify would show.
local offered, choice
vim.ui.select = function(items, options, chosen)
  offered = vim.tbl_map(options.format_item, items)
  out.prompt = options.prompt
  chosen(items[choice], choice)
end
local told = {}
vim.notify = function(message)
  table.insert(told, message)
end

local function offered_by(command)
  offered, choice = nil, nil
  vim.cmd(command)
  wait(command, function()
    return offered ~= nil
  end)
  return offered
end

local function indexed()
  local client = vim.lsp.get_clients({ name = "meaning" })[1]
  assert(client:request_sync("meaning/reindex", vim.empty_dict(), 60000))
end

local ok, failure = xpcall(function()
  -- Before any file is open: the project that Neovim stands in.
  assert(#vim.lsp.get_clients({ name = "meaning" }) == 0)
  vim.cmd("Meaning anything at all")
  out.started_at = vim.lsp.get_clients({ name = "meaning" })[1].root_dir
  indexed()
  offered_by("Meaning anything at all")

  -- Attach, search, jump.
  vim.cmd.edit("time/cron.py")
  wait("the client", function()
    return #vim.lsp.get_clients({ name = "meaning", bufnr = 0 }) == 1
  end)
  out.clients = #vim.lsp.get_clients({ name = "meaning" })
  vim.cmd("Meaning where is a failed upload sent again")
  choice = 1
  wait("the jump", function()
    return vim.fs.basename(vim.api.nvim_buf_get_name(0)) == "upload.py"
  end)
  out.offered = offered
  out.word = vim.fn.expand("<cword>")
  vim.cmd("normal! \15") -- back by the jump list
  out.back = vim.fs.basename(vim.api.nvim_buf_get_name(0))

  -- Edit the buffer, without saving: found again, where it stands now.
  vim.cmd.edit("time/cron.py")
  vim.api.nvim_buf_set_lines(0, 0, 0, false, { "", "def turn_pancake(pan):", '    """Turn a pancake. 😀"""', "" })
  out.typed = offered_by("Meaning turn a pancake")[1]
  out.moved = offered_by("Meaning split a cron expression")[1]

  -- Filters, nothing, a mistake, no choice.
  out.filtered = offered_by("Meaning lang:go cookies")
  told = {}
  vim.cmd("Meaning lang:zig path:nowhere/ cookies")
  wait("word of nothing", function()
    return #told > 0
  end)
  vim.cmd("Meaning lang:klingon cookies")
  wait("word of the mistake", function()
    return #told > 1
  end)
  out.told = told

  -- The quickfix list.
  vim.cmd("Meaning! split a cron expression")
  wait("the list", function()
    return vim.fn.getqflist({ size = 0 }).size > 0
  end)
  out.title = vim.fn.getqflist({ title = 0 }).title
  local first = vim.fn.getqflist()[1]
  out.first = { vim.fs.basename(vim.api.nvim_buf_get_name(first.bufnr)), first.lnum, first.col, first.text }
  out.window = vim.bo.buftype
  vim.cmd.cclose()

  -- Code like the function at the cursor.
  vim.fn.search("def parse_cron")
  out.similar = offered_by("MeaningSimilar")

  vim.ui.input = function(_, typed)
    typed("parse_cron")
  end
  vim.cmd("Meaning!")
  wait("the list of what was typed", function()
    return vim.fn.getqflist({ title = 0 }).title == "Meaning: parse_cron"
  end)
  vim.cmd.cclose()

  vim.cmd("checkhealth meaning")
  out.health = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n")
end, debug.traceback)

out.failure = not ok and tostring(failure) or nil
vim.fn.writefile({ vim.json.encode(out) }, vim.env.OUT)
vim.cmd("qall!")
