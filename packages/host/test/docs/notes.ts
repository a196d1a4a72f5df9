import { isHostError, runProcess, workspace } from "@statewright/host";

const files = workspace(process.cwd());
await files.write("notes/todo.md", "- ship it\n");
const { entries } = await files.list({ depth: 2 });

try {
  const counted = await runProcess("wc", ["-l", "notes/todo.md"], {
    cwd: files.root,
    timeoutMs: 60_000,
    onOutput: (chunk) => process.stdout.write(chunk),
  });
  console.log(entries.length, counted.exitCode);
} catch (error) {
  if (isHostError(error)) console.error(error.code, error.message);
}
