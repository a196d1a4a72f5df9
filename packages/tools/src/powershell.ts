/** The tool `powershell`, for Windows. Its arguments are tested; nobody has run it there yet. */
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

/** The tool `powershell`: what `bash` is elsewhere. Untried on Windows. */
export function powershell(options: ShellOptions): DefinedTool<"powershell", ShellArgs> {
  checkShellOptions("powershell", options);
  const shell: Shell = {
    command: options.shell ?? "powershell.exe",
    argv: powershellArgv,
    isPosix: false,
    artifactName: "powershell",
  };
  return defineTool({
    name: "powershell",
    label: "Run Command",
    description:
      "Run a command in PowerShell and read what it writes, both outputs together, and its exit code. Each call is a new shell in the workspace: no folder, variable or background process of an earlier call is left.",
    input: shellInput(options, "Get-ChildItem -Recurse -Filter *.ts"),
    effect: "once",
    safety: shellSafety,
    run: (args, runtime) => runInShell(shell, options, args, runtime),
  });
}

/** The command as PowerShell takes it without reading quotes a second time: base64 of UTF-16. The exit code is that of the last program. */
export function powershellArgv(command: string): readonly string[] {
  const script = [
    "$ProgressPreference = 'SilentlyContinue'",
    "[Console]::OutputEncoding = [Text.Encoding]::UTF8",
    command,
    "if ($null -ne $LASTEXITCODE) { exit $LASTEXITCODE }",
  ].join("\n");
  const encoded = Buffer.from(script, "utf16le").toString("base64");
  return ["-NoLogo", "-NoProfile", "-NonInteractive", "-EncodedCommand", encoded];
}
