/** The tool `bash`: a command in a new shell, its output while it runs, its exit code at the end. */
import { type DefinedTool, defineTool } from "@statewright/core";
import {
  checkShellOptions,
  runInShell,
  type Shell,
  type ShellArgs,
  type ShellOptions,
  shellInput,
  shellSafety,
} from "./shell-tool.ts";

/**
 * The tool `bash`. An exit code other than 0 is a result; 127 is a `not_found` error, a command that ran out of time a
 * `timeout`, a shell that is not there `failed`; each with what was written. Whatever the command leaves running in its
 * group ends with it.
 */
export function bash(options: ShellOptions): DefinedTool<"bash", ShellArgs> {
  checkShellOptions("bash", options);
  const { shell: program = "bash" } = options;
  const shell: Shell = {
    command: program,
    argv: /(?:^|\/)r?bash[^/]*$/.test(program) ? bashArgv : (command) => ["-c", command],
    isPosix: true,
    artifactName: "bash",
  };
  return defineTool({
    name: "bash",
    label: "Run Command",
    description:
      "Run a command in bash and read what it writes, both outputs together, and its exit code. Each call is a new shell in the workspace: no folder, variable or background process of an earlier call is left.",
    input: shellInput(options, "npm test 2>&1 | tail -50"),
    effect: "once",
    safety: shellSafety,
    run: (args, runtime) => runInShell(shell, options, args, runtime),
  });
}

/** A bash that reads no file of its own before the command; other shells do not know these words, and read none. */
function bashArgv(command: string): readonly string[] {
  return ["--noprofile", "--norc", "-c", command];
}
