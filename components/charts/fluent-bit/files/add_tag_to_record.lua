-- The output plugin finds pod, container and namespace in the tag, which is the name of the file.
function add_tag_to_record(tag, timestamp, record)
  record["tag"] = tag
  return 1, timestamp, record
end
