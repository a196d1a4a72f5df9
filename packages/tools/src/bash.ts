/** Tool `bash`: runs a command in a new shell, with streaming output and the exit code at the end. */
import { type DefinedTool, defineTool } from "@statewright/core";
import {
  checkShellOptions,
  createShellInput,
  runInShell,
  type Shell,
  type ShellArgs,
  type ShellOptions,
  shellSafety,
} from "./shell-tool.ts";

/**
 * Creates the tool `bash`. A nonzero exit code is a normal result, except 127 (`not_found` error), a timeout
 * (`timeout` error) and a missing shell (`failed` error); each error includes the output. All remaining processes of
 * the command's process group are terminated at its end.
 */
export function bash(options: ShellOptions): DefinedTool<"bash", ShellArgs> {
  checkShellOptions("bash", options);
  const { shell: program = "bash" } = options;
  const shell: Shell = {
    command: program,
    createArgv: /(?:^|\/)r?bash[^/]*$/.test(program) ? createBashArgv : (command) => ["-c", command],
    isPosix: true,
    artifactName: "bash",
  };
  return defineTool({
    name: "bash",
    label: "Run Command",
    description:
      "Run a command in bash and read its combined stdout and stderr, and its exit code. Each call is a new shell in the workspace: no folder, variable or background process of an earlier call remains.",
    input: createShellInput(options, "npm test 2>&1 | tail -50"),
    effect: "once",
    safety: shellSafety,
    run: (args, runtime) => runInShell(shell, options, args, runtime),
  });
}

/**
 * Prevents bash from reading startup files. Other shells do not support these flags, and read no startup files with
 * `-c`.
 */
function createBashArgv(command: string): readonly string[] {
  return ["--noprofile", "--norc", "-c", command];
}
