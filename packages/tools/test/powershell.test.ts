import { expect, test } from "vitest";
import { powershell } from "../src/index.ts";
import { createPowershellArgv } from "../src/powershell.ts";

test("PowerShell receives the command as one unparsed argument and returns the exit code of its last program", () => {
  const command = `Write-Output "a 'b'" | Select-String $HOME; git status`;
  const argv = createPowershellArgv(command);
  expect(argv.slice(0, -1)).toEqual(["-NoLogo", "-NoProfile", "-NonInteractive", "-EncodedCommand"]);
  const script = Buffer.from(argv.at(-1) ?? "", "base64").toString("utf16le");
  expect(script.split("\n")).toContain(command);
  expect(script).toMatch(/exit \$LASTEXITCODE \}$/);
  expect(powershell({ root: "." }).spec).toMatchObject({ name: "powershell", label: "Run Command", effect: "once" });
});
