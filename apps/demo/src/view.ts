/** What the demo prints: one line for each thing that happens. */
import type { Delta, RunEvent, ToolResult } from "statewright";
import { bytes, count, duration, plain, short } from "./format-text.ts";

/** Why a run is cancelled when a person stops it. */
export const stopReason = "stopped by a person";

const coloured = process.stdout.isTTY === true && (process.env["NO_COLOR"] ?? "") === "";
const paint =
  (code: number) =>
  (text: string): string =>
    coloured ? `\u001b[${code}m${text}\u001b[0m` : text;

export const bold: (text: string) => string = paint(1);
export const dim: (text: string) => string = paint(2);
const red = paint(31);
const green = paint(32);
const yellow = paint(33);
const blue = paint(36);

/** Print a line. */
export function say(text = ""): void {
  process.stdout.write(`${text}\n`);
}

/** Print what is wrong, where errors go. */
export function complain(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Print the title of an act. */
export function act(number: number, title: string): void {
  say();
  say(bold(`${number}  ${title}`));
  say(dim("─".repeat(72)));
}

/** What was counted over all processes. */
export interface Tally {
  steps: number;
  toolCalls: number;
  retries: number;
  bytes: number;
}

/** A view of the runs: prints their events, and counts. */
export interface View {
  readonly tally: Tally;
  show(event: RunEvent): void;
  /** Print a line of the demo's own among the events. */
  note(text: string): void;
}

/** A view whose clock starts now. */
export function createView(): View {
  const startedMs = performance.now();
  const tally: Tally = { steps: 0, toolCalls: 0, retries: 0, bytes: 0 };
  const inputs = new Map<string, string>();
  const calls = new Map<string, string>();
  let saved = "";

  const line = (text: string): void =>
    say(`${dim(`${((performance.now() - startedMs) / 1_000).toFixed(2)}s`.padStart(7))}  ${text}`);

  function show(event: RunEvent): void {
    switch (event.type) {
      case "run.started":
        if (event.recovered) line(yellow("the process before this one died; this one goes on"));
        return;
      case "step.committed":
        if (event.nodes.length > 0) tally.steps += 1;
        tally.bytes += event.bytes;
        saved = `${event.nodes.length === 0 ? "input" : `step ${event.step}`} saved: ${changesText(event.changes)} · ${bytes(event.bytes)}`;
        return;
      case "transition.taken": {
        const committed = event.event === "step.commit";
        const to = stateText(event.to);
        line(
          committed
            ? `${dim(`${stateText(event.from)} →`)} ${bold(to)}   ${dim(saved)}`
            : dim(`${stateText(event.from)} → ${to}`),
        );
        return;
      }
      case "task.started":
        inputs.set(event.task, partName(event.input));
        return;
      case "task.completed":
        if (event.node !== "check") return;
        line(
          `  ${green("✓")} check ${inputs.get(event.task) ?? event.task}  ${event.reused ? dim("kept, not run again") : dim(duration(event.durationMs))}`,
        );
        return;
      case "task.retried":
        tally.retries += 1;
        line(
          `  ${yellow("↻")} ${event.node}: attempt ${event.attempt} failed: ${short(event.error.message, 90)}; again in ${duration(event.delayMs)}`,
        );
        return;
      case "task.failed":
        // Ctrl-C ends every task that is at work; that is said once, by who asked for it.
        if (event.error.message.includes(stopReason)) return;
        line(`  ${red("✗")} ${event.node} failed: ${short(event.error.message, 120)}`);
        return;
      case "effect.reused":
        line(`  ${green("=")} ${nameOf(event.name, event.key)}  ${dim("kept, not run again")}`);
        return;
      case "effect.repeated":
        line(
          `  ${yellow("↻")} ${nameOf(event.name, event.key)}  ${yellow("was in flight: runs again")}, ${event.effect}, key ${event.idempotencyKey}`,
        );
        return;
      case "model.started":
        line(`  ${blue("▸")} ${event.model} reads ${count(event.messages, "message")}`);
        return;
      case "message.completed": {
        const asked = event.message.content.filter((block) => block.type === "call");
        const said = event.message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
        line(
          `  ${green("✓")} ${asked.length > 0 ? `it calls ${count(asked.length, "tool")} at once` : `“${short(said, 110)}”`}`.replace(
            "1 tool at once",
            "1 tool",
          ),
        );
        return;
      }
      case "tool.started":
        calls.set(event.callId, argsText(event.args));
        line(`  ${blue("▸")} ${event.tool}${argsText(event.args)}`);
        return;
      case "tool.progress":
        line(`    ${dim(`${event.tool}: ${plain(event.text)}`)}`);
        return;
      case "tool.retried":
        tally.retries += 1;
        line(
          `  ${yellow("↻")} ${event.tool}: attempt ${event.attempt} failed: ${short(event.error, 90)}; again in ${duration(event.delayMs)}`,
        );
        return;
      case "tool.completed":
        tally.toolCalls += 1;
        line(`  ${green("✓")} ${event.tool}${calls.get(event.callId) ?? ""}  ${dim(resultText(event.result))}`);
        return;
      case "tool.failed":
        tally.toolCalls += 1;
        line(
          `  ${red("✗")} ${event.tool}${calls.get(event.callId) ?? ""}  ${event.result.error?.kind ?? "failed"}: ${short(event.result.error?.message ?? "", 90)}`,
        );
        return;
      default:
        return;
    }
  }

  function nameOf(name: string, key: string): string {
    return `${name}${calls.get(key) ?? ""}`;
  }

  return { tally, show, note: line };
}

/** What changed, channel by channel: `messages +7, facts 3 keys, verdict set`. */
export function changesText(changes: Readonly<Record<string, Delta | undefined>>): string {
  const parts = Object.entries(changes).flatMap(([channel, delta]) =>
    delta === undefined ? [] : [`${channel} ${deltaText(delta)}`],
  );
  return parts.length === 0 ? "no change" : parts.join(", ");
}

function deltaText(delta: Delta): string {
  switch (delta.kind) {
    case "append":
      return `+${delta.items.length}`;
    case "patch":
      return `${delta.patches.map(({ path }) => path.join(".")).join("+")} set`;
    case "replace":
      return Array.isArray(delta.value) ? `set to ${delta.value.length}` : "set";
    case "clear":
      return "cleared";
  }
}

/** Where a machine stands: the nodes that are at work, or where its driver is. */
function stateText(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value !== "object" || value === null) return "start";
  const { driver, ...nodes } = value as Readonly<Record<string, unknown>>;
  const busy = Object.entries(nodes).flatMap(([node, leaf]) =>
    leaf === "idle" || leaf === "done" ? [] : [`${node}.${String(leaf)}`],
  );
  return busy.length > 0 ? busy.join(" + ") : String(driver);
}

function partName(input: unknown): string {
  return typeof input === "object" && input !== null && "name" in input ? plain(String(input.name)) : "";
}

function argsText(args: unknown): string {
  const values = Object.values((args ?? {}) as Readonly<Record<string, unknown>>);
  return values.length === 0 ? "" : ` ${short(values.map(String).join(" "), 60)}`;
}

function resultText(result: ToolResult): string {
  const [first] = result.content;
  const details = result.details as { readonly secretsRemoved?: number } | undefined;
  return [
    duration(result.elapsedMs),
    ...(result.attempts > 1 ? [count(result.attempts, "attempt")] : []),
    ...(first?.type === "text" ? [sizeText(first.text)] : []),
    ...(details?.secretsRemoved === undefined ? [] : [`${count(details.secretsRemoved, "secret")} taken out`]),
  ].join(" · ");
}

function sizeText(text: string): string {
  const lines = text.split("\n");
  return lines.length === 1 ? short(text, 70) : count(lines.length, "line");
}
