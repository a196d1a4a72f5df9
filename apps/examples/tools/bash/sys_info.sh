#!/bin/sh
# A plugin in the language of any POSIX shell: system, disk and memory. Start it with `sh sys_info.sh`.

# The text as the inside of a JSON string.
escaped() {
  printf '%s' "$1" | tr '\t\r' '  ' | sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' | awk 'NR > 1 { printf "\\n" } { printf "%s", $0 }'
}

reply() {
  printf '{"content":[{"type":"text","text":"%s"}],"error":%s}\n' "$(escaped "$1")" "$2"
}

system() {
  uname -srm
}

disk() {
  df -Pk . | awk 'NR == 2 { printf "%d of %d MB free\n", $4 / 1024, $2 / 1024 }'
}

memory() {
  if [ -r /proc/meminfo ]; then
    awk '/^MemTotal/ { total = $2 } /^MemAvailable/ { free = $2 } END { printf "%d of %d MB free\n", free / 1024, total / 1024 }' /proc/meminfo
  else
    sysctl -n hw.memsize | awk '{ printf "%d MB\n", $1 / 1048576 }'
  fi
}

while IFS= read -r line; do
  case $line in
    *'"type":"describe"'*)
      printf '%s\n' '{"name":"sys_info","description":"Tell about the machine: its system, its disk or its memory.","parameters":{"type":"object","properties":{"part":{"type":"string","description":"system, disk or memory"}},"required":["part"],"additionalProperties":false},"effect":"pure"}'
      ;;
    *'"type":"call"'*)
      part=$(printf '%s' "$line" | sed -n 's/.*"part":"\([a-z]*\)".*/\1/p')
      case $part in
        system | disk | memory) reply "$($part)" false ;;
        *) reply "part must be system, disk or memory" true ;;
      esac
      ;;
  esac
done
