-- Clients, browsers above all, send requests for all hosts of a certificate over one HTTP/2
-- connection. Routes belong to the host of the handshake (SNI), so such a request would reach the
-- wrong server: it is answered so that the client opens another connection (RFC 9110, 15.5.20).
-- Neither Envoy nor Istio does that by itself (envoyproxy/envoy#6767, istio/istio#13589).
function envoy_on_request(request_handle)
  local sni = request_handle:streamInfo():requestedServerName()
  if sni == "" then
    return
  end
  local host = string.gsub(request_handle:headers():get(":authority") or "", ":443$", "")
  if string.lower(host) ~= string.lower(sni) then
    request_handle:respond({[":status"] = "421"}, "Misdirected Request")
  end
end
