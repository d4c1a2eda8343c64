-- Find code by meaning, with meaning-lsp: the commands' side of it. How to ask is client.lua's.
--
-- :Meaning query      pick among the hits, and jump
-- :Meaning            hits that follow what you type; with Telescope, its picker does both
-- :Meaning! [query]   put them into the quickfix list
-- :MeaningSimilar[!]  code that does the same as the function at the cursor
local client = require("meaning.client")

local M = {}

local LIMIT = 20

local function one_line(text)
  return (text:gsub("%c", " "))
end

-- A hit as the user reads it in a list.
function M.label(hit)
  local name = hit.containerName and hit.containerName .. "." .. hit.name or hit.name
  local place = vim.fn.fnamemodify(vim.uri_to_fname(hit.location.uri), ":~:.")
  return one_line(("%s  %s:%d  %s"):format(name, place, hit.selectionRange.start.line + 1, hit.preview))
end

-- A hit as an item of the quickfix list.
function M.quickfix_item(hit, encoding)
  local item = vim.lsp.util.locations_to_items({ { uri = hit.location.uri, range = hit.selectionRange } }, encoding)[1]
  item.text = one_line(hit.preview)
  return item
end

function M.jump(hit, encoding)
  local place = { uri = hit.location.uri, range = hit.selectionRange }
  vim.lsp.util.show_document(place, encoding, { focus = true, reuse_win = true })
end

function M.to_quickfix(title, hits, encoding)
  local items = vim.tbl_map(function(hit)
    return M.quickfix_item(hit, encoding)
  end, hits)
  vim.fn.setqflist({}, " ", { title = title, items = items })
  vim.cmd("botright copen")
end

local function pick(title, hits, encoding)
  vim.ui.select(hits, { prompt = title, kind = "meaning", format_item = M.label }, function(hit)
    if hit then
      M.jump(hit, encoding)
    end
  end)
end

-- Shows the answer to a question as soon as it comes.
local function show(server, title, method, params, options)
  client.ask(server, method, params, function(answer, encoding)
    if #answer.items == 0 then
      return client.tell("nothing found" .. client.pending(answer))
    end
    if answer.pending > 0 then
      client.tell("there may be more" .. client.pending(answer))
    end
    local present = options.quickfix and M.to_quickfix or pick
    present(title, answer.items, encoding)
  end)
end

local function ask_for_query(options)
  if not options.quickfix then
    return require("meaning.live")(M)
  end
  vim.ui.input({ prompt = "Meaning: " }, function(typed)
    if typed and vim.trim(typed) ~= "" then
      M.search(typed, options)
    end
  end)
end

-- `query` may hold filters: lang:go path:internal/ kind:method. Empty: the user is asked for one.
-- options.quickfix: into the quickfix list; options.limit: how many hits.
function M.search(query, options)
  options = options or {}
  local telescope, found = pcall(require, "telescope")
  if telescope and not options.quickfix then
    return found.extensions.meaning.meaning({ default_text = query })
  end
  if vim.trim(query or "") == "" then
    return ask_for_query(options)
  end
  local server = client.get()
  if server then
    show(server, "Meaning: " .. query, "meaning/search", { query = query, limit = options.limit or LIMIT }, options)
  end
end

-- Code that does the same as the function at the cursor.
function M.similar(options)
  options = options or {}
  local server = client.get()
  if server then
    local params = vim.lsp.util.make_position_params(0, server.offset_encoding)
    params.limit = options.limit or LIMIT
    show(server, "Meaning: similar code", "meaning/similar", params, options)
  end
end

return M
