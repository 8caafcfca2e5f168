-- The gateway ends TLS for API servers, so client certificates end here, too. Their subject goes
-- on in the headers of an authenticating proxy; the route of authenticated requests, which is
-- chosen by the metadata set here, presents the certificate with which an API server believes
-- these headers. No other request may carry them.

-- Watches and port forwarding are long; a day bounds those that were forgotten.
local one_day = "86400000"

-- A client must not choose its own identity.
local function remove_identity(headers)
  local found = {}
  for name, _ in pairs(headers) do
    if string.sub(string.lower(name), 1, 9) == "x-remote-" then
      table.insert(found, name)
    end
  end
  for _, name in ipairs(found) do
    headers:remove(name)
  end
end

function envoy_on_request(request_handle)
  local headers = request_handle:headers()
  local info = request_handle:streamInfo()

  remove_identity(headers)
  headers:replace("x-envoy-upstream-rq-timeout-ms", one_day)
  headers:replace("x-envoy-upstream-rq-per-try-timeout-ms", one_day)

  -- A certificate that is here is valid: the handshake fails with any other.
  local tls = info:downstreamSslConnection()
  local subject = tls and tls:parsedSubjectPeerCertificate()
  if not subject then
    return
  end
  local user = subject:commonName()
  if user == "" then
    request_handle:respond({[":status"] = "400"}, "The client certificate has no common name")
    return
  end

  headers:add("X-Remote-User", user)
  for _, group in ipairs(subject:organizationName()) do
    if group ~= "" then
      headers:add("X-Remote-Group", group)
    end
  end
  info:dynamicMetadata():set("envoy.filters.http.lua", "authenticated-kube-apiserver-host", info:requestedServerName())
end
