-- Every program has its own words for how bad something is; queries want one.
local words = {
  DBG = { "D", "DBG", "DEBUG" },
  INFO = { "I", "INF", "INFO" },
  NOTICE = { "N", "NOTICE" },
  WARN = { "W", "WRN", "WARN", "WARNING" },
  ERR = { "E", "ERR", "ERROR", "EROR" },
  FATAL = { "F", "FATAL" },
}

local severities = {}
for severity, list in pairs(words) do
  for _, word in ipairs(list) do
    severities[word] = severity
  end
end

function cb_modify(tag, timestamp, record)
  local word = record["severity"]
  if type(word) ~= "string" then
    return 0, timestamp, record
  end
  local severity = severities[word:match("^%s*(.-)%s*$"):upper()]
  if severity == nil then
    return 0, timestamp, record
  end
  record["severity"] = severity
  return 1, timestamp, record
end
