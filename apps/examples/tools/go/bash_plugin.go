// A plugin in Go: runs a shell command. Start it with `go run bash_plugin.go`, or build it and start the program.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

type message struct {
	Type   string `json:"type"`
	Params struct {
		Command string `json:"command"`
	} `json:"params"`
}

type block struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type reply struct {
	Content []block        `json:"content"`
	Error   bool           `json:"error"`
	Details map[string]any `json:"details,omitempty"`
}

const definition = `{"name":"run_command","description":"Run a shell command and give what it writes, with its exit code.","parameters":{"type":"object","properties":{"command":{"type":"string","description":"What the shell is to run"}},"required":["command"],"additionalProperties":false},"effect":"once"}`

func run(command string) reply {
	if command == "" {
		return reply{Content: []block{{"text", "command is empty"}}, Error: true}
	}
	written, err := exec.Command("sh", "-c", command).CombinedOutput()
	code := 0
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		code = ended.ExitCode()
	} else if err != nil {
		return reply{Content: []block{{"text", err.Error()}}, Error: true}
	}
	text := string(written)
	if code != 0 {
		text = fmt.Sprintf("%s(exit code %d)", text, code)
	}
	return reply{Content: []block{{"text", text}}, Details: map[string]any{"exitCode": code}}
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 0, 64*1024), 16*1024*1024)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var next message
		if err := json.Unmarshal(lines.Bytes(), &next); err != nil {
			fmt.Fprintln(os.Stderr, err)
			continue
		}
		switch next.Type {
		case "describe":
			fmt.Println(definition)
		case "call":
			out.Encode(run(next.Params.Command))
		}
	}
}
