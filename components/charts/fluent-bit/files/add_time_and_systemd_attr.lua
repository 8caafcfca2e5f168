-- Entries of the journal get the names that OpenTelemetry has for what they say; other fields go.
local names = {
  MESSAGE = "log",
  PRIORITY = "level",
  _EXE = "process.command",
  _CMDLINE = "process.command_line",
  _PID = "process.pid",
  _HOSTNAME = "host.name",
  _MACHINE_ID = "host.id",
  _SYSTEMD_UNIT = "service.name",
  _SYSTEMD_SLICE = "service.namespace",
}

function add_time_and_systemd_attr(tag, timestamp, record)
  local entry = {
    time = os.date("!%Y-%m-%dT%H:%M:%S", timestamp["sec"]) .. string.format(".%09dZ", timestamp["nsec"]),
  }
  for field, name in pairs(names) do
    entry[name] = record[field]
  end
  return 1, timestamp, entry
end
