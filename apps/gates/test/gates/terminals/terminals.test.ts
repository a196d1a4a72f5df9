/** Three terminals on one file, as real processes: a worker, a watcher and a desk. */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";

const program = fileURLToPath(new URL("../../../../examples/src/terminals.ts", import.meta.url));
const sentence = "It rains in Oslo, and it will rain all day.";
const words = sentence.split(/(?<= )/);

interface Terminals {
  /** Runs an order to its end and returns its output. */
  readonly order: (...args: readonly string[]) => Promise<string>;
  /** Starts a worker that says a word per call of `say`. */
  readonly startWorker: () => { readonly say: () => void; readonly kill: () => Promise<void> };
  readonly startWatcher: (runs: number) => Watcher;
}

interface Watcher {
  /** Text on the terminal: a backspace erases the character before it. */
  readonly getText: () => string;
  /** Every text that was on the terminal. */
  readonly shown: readonly string[];
  readonly waitForText: (text: string) => Promise<void>;
  readonly ended: Promise<number | null>;
}

function openTerminals(): Terminals {
  const folder = mkdtempSync(join(tmpdir(), "terminals-"));
  const env = { ...process.env, TERMINALS_FILE: join(folder, "agent.db"), XDG_RUNTIME_DIR: folder };
  const children: ChildProcess[] = [];
  const waitForExit = (child: ChildProcess): Promise<number | null> =>
    new Promise((resolve) => child.once("exit", (code) => resolve(code)));
  onTestFinished(async () => {
    const running = children.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
    await Promise.all(
      running.map((child) => {
        const exited = waitForExit(child);
        child.kill("SIGKILL");
        return exited;
      }),
    );
    rmSync(folder, { recursive: true, force: true });
  });
  const start = (args: readonly string[]): ChildProcess => {
    const child = spawn(process.execPath, [program, ...args], { env, stdio: ["ignore", "pipe", "inherit"] });
    children.push(child);
    return child;
  };
  return {
    order: async (...args) => {
      const child = start(args);
      let text = "";
      child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      const code = await new Promise((resolve) => child.once("close", resolve));
      expect(code, args.join(" ")).toBe(0);
      return text.trim();
    },
    startWorker: () => {
      const child = fork(program, ["work"], { env, execArgv: [], stdio: ["ignore", "ignore", "inherit", "ipc"] });
      children.push(child);
      const exited = waitForExit(child);
      return {
        say: () => void child.send("word"),
        kill: async () => {
          child.kill("SIGKILL");
          await exited;
        },
      };
    },
    startWatcher: (runs) => readTerminal(start(["watch", String(runs)]), waitForExit),
  };
}

function readTerminal(child: ChildProcess, waitForExit: (child: ChildProcess) => Promise<number | null>): Watcher {
  let text = "";
  const shown: string[] = [];
  const waiting = new Set<() => void>();
  child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
    for (const character of chunk) text = character === "\b" ? text.slice(0, -1) : text + character;
    shown.push(text);
    for (const check of waiting) check();
  });
  const ended = waitForExit(child);
  return {
    getText: () => text,
    shown,
    ended,
    waitForText: (expected) =>
      new Promise((resolve, reject) => {
        const check = (): void => {
          if (text !== expected) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        void ended.then(() => reject(new Error(`the watcher ended with ${JSON.stringify(text)}`)));
        check();
      }),
  };
}

test("three terminals on one file: watch, cancel in mid-sentence, plan, list, kill and continue [SE6, SE5, Y7, Y8]", async () => {
  const { order, startWorker, startWatcher } = openTerminals();
  expect(await order("ask", "What is the weather?")).toBe("queued");
  const watcher = startWatcher(2);
  const first = startWorker();
  for (const [index] of words.slice(0, 3).entries()) {
    first.say();
    await watcher.waitForText(words.slice(0, index + 1).join(""));
  }
  expect(await order("cancel", "too long")).toBe("requested");
  const cancelled = "(cancelled: too long)\n";
  await watcher.waitForText(cancelled);

  await order("plan");
  const planned = (await order("list")).split("\n");
  expect(planned).toEqual([
    expect.stringMatching(/^run tomorrow \d{4}-\d{2}-\d{2}T/),
    expect.stringMatching(/^schedule morning-report active 0 9 \* \* \* Europe\/Oslo \d{4}-\d{2}-\d{2}T/),
  ]);

  expect(await order("ask", "And now in short?")).toBe("queued");
  for (const [index] of words.slice(0, 4).entries()) {
    first.say();
    await watcher.waitForText(`${cancelled}${words.slice(0, index + 1).join("")}`);
  }
  await first.kill();
  const second = startWorker();
  for (const _ of words) second.say();
  expect(await watcher.ended).toBe(0);
  expect(watcher.getText()).toBe(`${cancelled}${sentence}\n(done)\n`);
  const repeated = watcher.shown.filter((text) => (text.match(/It rains/g) ?? []).length > 1);
  expect(repeated).toEqual([]);
  expect((await order("list")).split("\n")).toEqual(planned);
});
