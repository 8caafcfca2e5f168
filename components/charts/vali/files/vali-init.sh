#!/bin/bash
# All chunks are in one directory. Without large_dir, ext4 takes no more files into it long before the volume is full.
device=$(findmnt --noheadings --output SOURCE /data 2>/dev/null || awk '$2 == "/data" {print $1}' /proc/mounts)
if [ -z "$device" ]; then
  echo "nothing is mounted at /data"
  exit 1
fi
tune2fs -O large_dir "$device"
