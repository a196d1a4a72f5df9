/** Output of the demo: one line per run event. */

import type { RunEvent, ToolResult } from "statewright";
import type { Delta } from "statewright/store";
import { formatBytes, formatCount, formatDuration, toPlainLine, truncate } from "./format-text.ts";

/** Cancel reason of a run stopped by the user. */
export const stopReason = "stopped by the user";

/** Stream of the output for people. `--json` reserves stdout for the report. */
const output = process.argv.includes("--json") ? process.stderr : process.stdout;

const useColors = output.isTTY === true && (process.env["NO_COLOR"] ?? "") === "";
const createStyle =
  (code: number) =>
  (text: string): string =>
    useColors ? `\u001b[${code}m${text}\u001b[0m` : text;

export const bold: (text: string) => string = createStyle(1);
export const dim: (text: string) => string = createStyle(2);
const red = createStyle(31);
const green = createStyle(32);
const yellow = createStyle(33);
const blue = createStyle(36);

/** Prints a line for people: to stdout, or to stderr with `--json`. */
export function print(text = ""): void {
  output.write(`${text}\n`);
}

/** Prints a value as JSON to stdout. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value, undefined, 2)}\n`);
}

/** Prints a line to stderr. */
export function printError(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Prints the title of an act. */
export function printActTitle(number: number, title: string): void {
  print();
  print(bold(`${number}  ${title}`));
  print(dim("─".repeat(72)));
}

/** Totals of all processes. */
export interface Tally {
  steps: number;
  toolCalls: number;
  retries: number;
  bytes: number;
}

/** View of the runs: prints their events and counts steps, calls, retries and bytes. */
export interface View {
  readonly tally: Tally;
  show(event: RunEvent): void;
  /** Prints a line of the demo among the events. */
  note(text: string): void;
}

/** Creates a view. Its clock starts now. */
export function createView(): View {
  const startedMs = performance.now();
  const tally: Tally = { steps: 0, toolCalls: 0, retries: 0, bytes: 0 };
  const inputs = new Map<string, string>();
  const calls = new Map<string, string>();
  let savedText = "";

  const printLine = (text: string): void =>
    print(`${dim(`${((performance.now() - startedMs) / 1_000).toFixed(2)}s`.padStart(7))}  ${text}`);

  function show(event: RunEvent): void {
    switch (event.type) {
      case "run.started":
        if (event.recovered) printLine(yellow("the previous process died; this process resumes the run"));
        return;
      case "step.committed":
        if (event.nodes.length > 0) tally.steps += 1;
        tally.bytes += event.bytes;
        savedText = `${event.nodes.length === 0 ? "input" : `step ${event.step}`} saved: ${formatChanges(event.changes)} · ${formatBytes(event.bytes)}`;
        return;
      case "transition.taken": {
        const committed = event.event === "step.commit";
        const to = formatMachineState(event.to);
        printLine(
          committed
            ? `${dim(`${formatMachineState(event.from)} →`)} ${bold(to)}   ${dim(savedText)}`
            : dim(`${formatMachineState(event.from)} → ${to}`),
        );
        return;
      }
      case "task.started":
        inputs.set(event.task, getPartName(event.input));
        return;
      case "task.completed":
        if (event.node !== "check") return;
        printLine(
          `  ${green("✓")} check ${inputs.get(event.task) ?? event.task}  ${event.reused ? dim("saved result reused") : dim(formatDuration(event.durationMs))}`,
        );
        return;
      case "task.retried":
        tally.retries += 1;
        printLine(
          `  ${yellow("↻")} ${event.node}: attempt ${event.attempt} failed: ${truncate(event.error.message, 90)}; retry in ${formatDuration(event.delayMs)}`,
        );
        return;
      case "task.failed":
        // A cancel by the user ends every running task; the stop message is already printed.
        if (event.error.message.includes(stopReason)) return;
        printLine(`  ${red("✗")} ${event.node} failed: ${truncate(event.error.message, 120)}`);
        return;
      case "effect.reused":
        printLine(`  ${green("=")} ${formatCallName(event.name, event.key)}  ${dim("saved result reused")}`);
        return;
      case "effect.repeated":
        printLine(
          `  ${yellow("↻")} ${formatCallName(event.name, event.key)}  ${yellow("was in flight: runs again")}, ${event.effect}, key ${event.idempotencyKey}`,
        );
        return;
      case "model.started":
        printLine(`  ${blue("▸")} ${event.model} reads ${formatCount(event.messages, "message")}`);
        return;
      case "message.completed": {
        const callBlocks = event.message.content.filter((block) => block.type === "call");
        const spokenText = event.message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
        printLine(
          `  ${green("✓")} ${callBlocks.length > 0 ? `calls ${formatCount(callBlocks.length, "tool")} in parallel` : `“${truncate(spokenText, 110)}”`}`.replace(
            "1 tool in parallel",
            "1 tool",
          ),
        );
        return;
      }
      case "tool.started":
        calls.set(event.callId, formatArgs(event.args));
        printLine(`  ${blue("▸")} ${event.tool}${formatArgs(event.args)}`);
        return;
      case "tool.progress":
        printLine(`    ${dim(`${event.tool}: ${toPlainLine(event.text)}`)}`);
        return;
      case "tool.retried":
        tally.retries += 1;
        printLine(
          `  ${yellow("↻")} ${event.tool}: attempt ${event.attempt} failed: ${truncate(event.error, 90)}; retry in ${formatDuration(event.delayMs)}`,
        );
        return;
      case "tool.completed":
        tally.toolCalls += 1;
        printLine(`  ${green("✓")} ${event.tool}${calls.get(event.callId) ?? ""}  ${dim(formatResult(event.result))}`);
        return;
      case "tool.failed":
        tally.toolCalls += 1;
        printLine(
          `  ${red("✗")} ${event.tool}${calls.get(event.callId) ?? ""}  ${event.result.error?.kind ?? "failed"}: ${truncate(event.result.error?.message ?? "", 90)}`,
        );
        return;
      default:
        return;
    }
  }

  function formatCallName(name: string, key: string): string {
    return `${name}${calls.get(key) ?? ""}`;
  }

  return { tally, show, note: printLine };
}

/** Formats the changes by channel: `messages +7, facts 3 keys, verdict set`. */
export function formatChanges(changes: Readonly<Record<string, Delta | undefined>>): string {
  const parts = Object.entries(changes).flatMap(([channel, delta]) =>
    delta === undefined ? [] : [`${channel} ${formatDelta(delta)}`],
  );
  return parts.length === 0 ? "no change" : parts.join(", ");
}

function formatDelta(delta: Delta): string {
  switch (delta.kind) {
    case "append":
      return `+${delta.items.length}`;
    case "patch":
      return `${delta.patches.map(({ path }) => path.join(".")).join("+")} set`;
    case "replace":
      return Array.isArray(delta.value) ? `set to ${delta.value.length} items` : "set";
    case "clear":
      return "cleared";
  }
}

/** Formats the state of the machine: its active nodes, or the state of its driver. */
function formatMachineState(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return "start";
  const { driver, ...nodes } = value as Readonly<Record<string, unknown>>;
  const activeNodes = Object.entries(nodes).flatMap(([node, leaf]) =>
    leaf === "idle" || leaf === "done" ? [] : [`${node}.${String(leaf)}`],
  );
  return activeNodes.length > 0 ? activeNodes.join(" + ") : String(driver);
}

function getPartName(input: unknown): string {
  return typeof input === "object" && input !== null && "name" in input ? toPlainLine(String(input.name)) : "";
}

function formatArgs(args: unknown): string {
  const values = Object.values((args ?? {}) as Readonly<Record<string, unknown>>);
  return values.length === 0 ? "" : ` ${truncate(values.map(String).join(" "), 60)}`;
}

function formatResult(result: ToolResult): string {
  const [first] = result.content;
  const details = result.details as { readonly secretsRemoved?: number } | undefined;
  return [
    formatDuration(result.elapsedMs),
    ...(result.attempts > 1 ? [formatCount(result.attempts, "attempt")] : []),
    ...(first?.type === "text" ? [formatSize(first.text)] : []),
    ...(details?.secretsRemoved === undefined ? [] : [`${formatCount(details.secretsRemoved, "secret")} redacted`]),
  ].join(" · ");
}

function formatSize(text: string): string {
  const lines = text.split("\n");
  return lines.length === 1 ? truncate(text, 70) : formatCount(lines.length, "line");
}
