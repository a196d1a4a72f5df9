/** Tool `powershell`, for Windows. Only its arguments are tested; not yet run on Windows. */
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

/** Creates the tool `powershell`, the counterpart of `bash`. Not yet run on Windows. */
export function powershell(options: ShellOptions): DefinedTool<"powershell", ShellArgs> {
  checkShellOptions("powershell", options);
  const shell: Shell = {
    command: options.shell ?? "powershell.exe",
    createArgv: createPowershellArgv,
    isPosix: false,
    artifactName: "powershell",
  };
  return defineTool({
    name: "powershell",
    label: "Run Command",
    description:
      "Run a command in PowerShell and read its combined stdout and stderr, and its exit code. Each call is a new shell in the workspace: no folder, variable or background process of an earlier call remains.",
    input: createShellInput(options, "Get-ChildItem -Recurse -Filter *.ts"),
    effect: "once",
    safety: shellSafety,
    run: (args, runtime) => runInShell(shell, options, args, runtime),
  });
}

/**
 * Encodes the command as base64 of UTF-16, so that PowerShell does not parse quotes twice. The exit code is the exit
 * code of the last program.
 */
export function createPowershellArgv(command: string): readonly string[] {
  const script = [
    "$ProgressPreference = 'SilentlyContinue'",
    "[Console]::OutputEncoding = [Text.Encoding]::UTF8",
    command,
    "if ($null -ne $LASTEXITCODE) { exit $LASTEXITCODE }",
  ].join("\n");
  const encoded = Buffer.from(script, "utf16le").toString("base64");
  return ["-NoLogo", "-NoProfile", "-NonInteractive", "-EncodedCommand", encoded];
}
