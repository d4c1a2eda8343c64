-- :Telescope meaning: search while you type, with a preview; <C-q> puts the hits into the quickfix list.
local channel = require("plenary.async.control").channel
local conf = require("telescope.config").values
local finders = require("telescope.finders")
local pickers = require("telescope.pickers")

local client = require("meaning.client")
local meaning = require("meaning")

local LIMIT = 50

local function entry_of(encoding)
  return function(hit)
    local item = meaning.quickfix_item(hit, encoding)
    local label = meaning.label(hit)
    return { value = hit, ordinal = label, display = label, filename = item.filename, lnum = item.lnum, col = item.col }
  end
end

-- The hits of what is typed now; the question before is taken back.
local function asking(server)
  local cancel = function() end
  return function(prompt)
    cancel()
    if vim.trim(prompt) == "" then
      return {}
    end
    local answered, answer = channel.oneshot()
    local sent, id = server:request("meaning/search", { query = prompt, limit = LIMIT }, answered)
    cancel = function()
      if sent then
        server:cancel_request(id)
      end
    end
    local problem, result = answer()
    return problem and {} or result.items
  end
end

-- The best first, as they come; Telescope's sorters would match letters.
local function picker(options)
  local server = client.get()
  if not server then
    return
  end
  pickers
    .new(options or {}, {
      prompt_title = "Find code by meaning",
      finder = finders.new_dynamic({ fn = asking(server), entry_maker = entry_of(server.offset_encoding) }),
      previewer = conf.grep_previewer(options or {}),
      sorter = require("telescope.sorters").empty(),
    })
    :find()
end

return require("telescope").register_extension({ exports = { meaning = picker } })
