/** Proxy process in front of a plugin: forwards lines and injects faults into the calls of its plan. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { createFaultCounter } from "../faults/fault-plan.ts";
import type { PluginFaults } from "../faults/faulty-plugin.ts";

const [planText = "{}", command = "", ...args] = process.argv.slice(2);
const plan = JSON.parse(planText) as PluginFaults;
const { how = "error", slowMs = 100 } = plan;
const shouldFail = createFaultCounter(plan);
const plugin = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });

plugin.stdout.pipe(process.stdout);
plugin.on("exit", (code) => process.exit(code ?? 1));
plugin.stdin.on("error", () => process.exit(1));

createInterface({ input: process.stdin })
  .on("line", handleLine)
  .on("close", () => plugin.stdin.end());

function handleLine(line: string): void {
  const message = JSON.parse(line) as { readonly type?: string; readonly call_id?: string };
  if (message.type === "call" && shouldFail()) injectFault(line, message.call_id);
  else forwardLine(line);
}

function injectFault(line: string, callId: string | undefined): void {
  const id = callId === undefined ? {} : { call_id: callId };
  switch (how) {
    case "hang":
      return;
    case "slow":
      // biome-ignore lint/style/noRestrictedGlobals: a process of its own, which no world reaches
      setTimeout(() => forwardLine(line), slowMs);
      return;
    case "malformed":
      process.stdout.write(`{"content": nonsense\n`);
      return;
    case "cut":
      process.stdout.write(`{"content":[{"type":"te`, () => {
        plugin.kill("SIGKILL");
        process.exit(1);
      });
      return;
    default:
      process.stdout.write(
        `${JSON.stringify({ ...id, content: [{ type: "text", text: "The test made this plugin fail" }], error: true })}\n`,
      );
  }
}

function forwardLine(line: string): void {
  plugin.stdin.write(`${line}\n`);
}
