/**
 * `servers`: server processes on one SQLite file that are killed, that share the file behind a balancer, and that
 * replace each other. Clients of all protocols end with the right text, and no payment is made twice.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Chance, createChance } from "@statewright/testing";
import { startBalancer } from "./balancer.ts";
import { type ChatRequest, type ChatResult, type ClientProtocol, chat, clientProtocols } from "./chat-client.ts";
import { createAnswer, listPayments } from "./served-chat.ts";
import { ServedProcess } from "./served-process.ts";
import { serverToken } from "./server-process.ts";

/** Result of a series of conversations. */
export interface ServersReport {
  readonly conversations: number;
  /** Connections beside the first ones of the conversations. */
  readonly reconnections: number;
  readonly violations: readonly string[];
}

/** Longest time of a conversation. */
const conversationMs = 30_000;

/** Latest kill by time, in milliseconds: before the first word, in most cases. */
const latestKillMs = 120;

/** Sums of a part, and the folder of its file. */
class Series {
  readonly folder: string = mkdtempSync(join(tmpdir(), "statewright-servers-"));
  readonly #processes: ServedProcess[] = [];
  readonly #violations: string[] = [];
  #conversations = 0;
  #reconnections = 0;

  /** Thread of the next conversation. */
  get nextThread(): string {
    return `t${this.#conversations}`;
  }

  start(port = 0): ServedProcess {
    const process = new ServedProcess(this.folder, port);
    this.#processes.push(process);
    return process;
  }

  /** Holds a conversation to its end, and checks what the client has seen. */
  async converse(
    protocol: ClientProtocol,
    url: string,
    { end = "completed", ...more }: Pick<ChatRequest, "onText"> & { readonly end?: ChatResult["end"] } = {},
  ): Promise<void> {
    const thread = this.nextThread;
    const nth = this.#conversations++;
    const text = `order ${nth}`;
    const name = `${protocol} ${thread}`;
    const answer = createAnswer(text);
    const signal = AbortSignal.timeout(conversationMs);
    try {
      const result = await chat({ protocol, url, thread, text, answer, signal, ...more });
      this.#reconnections += result.connections - 1;
      for (const violation of result.violations) this.#violations.push(`${name}: ${violation}`);
      if (result.end !== end) this.#violations.push(`${name}: expected a run that is ${end}, got ${result.end}`);
      if (end === "completed" && result.text !== answer)
        this.#violations.push(`${name}: expected the whole answer, got ${JSON.stringify(result.text)}`);
    } catch (error) {
      this.#violations.push(`${name}: ${error instanceof Error ? error.message : String(error)}`);
    }
    const payments = listPayments(join(this.folder, "payments.txt")).filter((order) => order === text).length;
    if (payments > 1) this.#violations.push(`${name}: paid ${payments} times`);
  }

  /** Ends all processes, removes the file, and returns the report. */
  async end(): Promise<ServersReport> {
    for (const process of this.#processes) {
      await process.kill();
      if (process.stderr !== "") this.#violations.push(`a server logged: ${process.stderr.slice(0, 1_000)}`);
    }
    rmSync(this.folder, { recursive: true, force: true });
    return { conversations: this.#conversations, reconnections: this.#reconnections, violations: this.#violations };
  }
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Resolves when a shown text has a length. */
function watchText(length: number): { readonly onText: (shown: number) => void; readonly isReached: Promise<void> } {
  let reach = (): void => undefined;
  const isReached = new Promise<void>((resolve) => {
    reach = resolve;
  });
  return {
    isReached,
    onText: (shown) => {
      if (shown >= length) reach();
    },
  };
}

function pickProtocol(nth: number): ClientProtocol {
  return clientProtocols[nth % clientProtocols.length] ?? "native";
}

/** Kills the server at a random moment of each conversation; the next process listens at the same port. */
export async function killServers(kills: number, seed: number): Promise<ServersReport> {
  const series = new Series();
  const chance = createChance(seed);
  let current = series.start();
  const port = await current.listen();
  for (let nth = 0; nth < kills; nth++) {
    const next = series.start(port);
    await next.isStandingBy;
    await converseUntilKill(series, { protocol: pickProtocol(nth), port, current, next, chance });
    current = next;
  }
  return await series.end();
}

/** The moment is a time for some conversations, and a length of the shown text for the others. */
async function converseUntilKill(
  series: Series,
  {
    protocol,
    port,
    current,
    next,
    chance,
  }: {
    readonly protocol: ClientProtocol;
    readonly port: number;
    readonly current: ServedProcess;
    readonly next: ServedProcess;
    readonly chance: Chance;
  },
): Promise<void> {
  const length = chance.getInteger(createAnswer("order 0").length);
  const { onText, isReached } = watchText(length);
  const conversation = series.converse(protocol, `http://127.0.0.1:${port}`, { onText });
  await Promise.race([chance.flip(0.3) ? wait(chance.getInteger(latestKillMs)) : isReached, conversation]);
  await current.kill();
  await next.listen();
  await conversation;
}

/** Two processes behind a balancer that alternates per request. Then each cancels a run, wherever it is at work. */
export async function balanceServers(rounds: number): Promise<ServersReport> {
  const series = new Series();
  const ports = await Promise.all([series.start(), series.start()].map((process) => process.listen()));
  const balancer = await startBalancer(ports);
  for (let round = 0; round < rounds; round++) {
    await Promise.all(clientProtocols.map((protocol) => series.converse(protocol, balancer.url)));
    for (const port of ports) await cancelConversation(series, pickProtocol(round), balancer.url, port);
  }
  const report = await series.end();
  await balancer.close();
  return report;
}

/** Cancels a conversation in the middle, by a request to the process at `port`. */
async function cancelConversation(series: Series, protocol: ClientProtocol, url: string, port: number): Promise<void> {
  let cancelled: Promise<unknown> | undefined;
  const thread = series.nextThread;
  const onText = (length: number): void => {
    if (length < 40) return;
    cancelled ??= fetch(`http://127.0.0.1:${port}/api/threads/${thread}/cancel`, {
      method: "POST",
      headers: { authorization: `Bearer ${serverToken}`, "content-type": "application/json" },
      body: "{}",
    }).then((response) => response.text());
  };
  await series.converse(protocol, url, { end: "cancelled", onText });
  await cancelled;
}

/** Starts the next process, points the proxy at it, and drains the old one, in the middle of conversations. */
export async function replaceServers(rounds: number): Promise<ServersReport> {
  const series = new Series();
  let current = series.start();
  const balancer = await startBalancer([await current.listen()]);
  for (let round = 0; round < rounds; round++) {
    const next = series.start();
    const port = await next.listen();
    const { onText, isReached } = watchText(20);
    const conversations = clientProtocols.map((protocol) => series.converse(protocol, balancer.url, { onText }));
    await isReached;
    balancer.setTargets([port]);
    await current.drain();
    await Promise.all(conversations);
    current = next;
  }
  const report = await series.end();
  await balancer.close();
  return report;
}
