/** The process that stands before a plugin: hands lines on, and spoils the calls that its plan names. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { planned } from "../faults/fault-plan.ts";
import type { PluginFaults } from "../faults/faulty-plugin.ts";

const [planText = "{}", command = "", ...args] = process.argv.slice(2);
const plan = JSON.parse(planText) as PluginFaults;
const { how = "error", slowMs = 100 } = plan;
const fails = planned(plan);
const plugin = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });

plugin.stdout.pipe(process.stdout);
plugin.on("exit", (code) => process.exit(code ?? 1));
plugin.stdin.on("error", () => process.exit(1));

createInterface({ input: process.stdin })
  .on("line", take)
  .on("close", () => plugin.stdin.end());

function take(line: string): void {
  const message = JSON.parse(line) as { readonly type?: string; readonly call_id?: string };
  if (message.type === "call" && fails()) spoil(line, message.call_id);
  else handOn(line);
}

function spoil(line: string, callId: string | undefined): void {
  const id = callId === undefined ? {} : { call_id: callId };
  switch (how) {
    case "hang":
      return;
    case "slow":
      // biome-ignore lint/style/noRestrictedGlobals: a process of its own, which no world reaches
      setTimeout(() => handOn(line), slowMs);
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

function handOn(line: string): void {
  plugin.stdin.write(`${line}\n`);
}
