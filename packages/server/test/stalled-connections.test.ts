/** Connections of a listening server that take no bytes: counts of what others receive and of what the process holds. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import process from "node:process";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { defineGraph, defineState, END, START } from "@statewright/core";
import { expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import type { Route } from "../src/http/route.ts";
import { bareToken, createBareServer } from "./support/create-bare-server.ts";
import { createTestServer, testTokens } from "./support/create-test-server.ts";

const chunkBytes = 65_536;
/** Events of more bytes than the buffers of the kernel for a connection, and the limits of the server, hold together. */
const loudEvents = 250;
/** A connection with waiting bytes is cut after seven beats that it has taken none at. */
const maxBeats = 20;

/** Opens a connection, sends a request on it, and reads nothing. */
async function openSilentReader(url: string, token: string): Promise<Socket> {
  const { hostname, port, host, pathname } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  socket.on("error", () => undefined);
  onTestFinished(() => void socket.destroy());
  await once(socket, "connect");
  socket.pause();
  socket.write(`GET ${pathname} HTTP/1.1\r\nhost: ${host}\r\nauthorization: Bearer ${token}\r\n\r\n`);
  return socket;
}

/** Reads a stream, and counts the frames of a name. */
class CountingReader {
  readonly #name: string;
  #text = "";
  #wake: (() => void) | undefined;
  count = 0;
  hasEnded = false;
  /** Resolves when the stream has ended, also by an error. */
  readonly ended: Promise<void>;

  constructor(body: ReadableStream<Uint8Array>, name: string) {
    this.#name = `event: ${name}\n`;
    this.ended = this.#read(body)
      .catch(() => undefined)
      .then(() => {
        this.hasEnded = true;
        this.#wake?.();
      });
  }

  async #read(body: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const piece of body) {
      this.#text += decoder.decode(piece, { stream: true });
      const parts = this.#text.split(this.#name);
      this.count += parts.length - 1;
      this.#text = (parts.at(-1) ?? "").slice(-this.#name.length);
      this.#wake?.();
    }
  }

  async waitFor(count: number): Promise<void> {
    while (this.count < count && !this.hasEnded)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
  }
}

/** Graph whose node emits a large event each time that the test asks for one. */
function createLoudGraph() {
  let emit: ((index: number) => void) | undefined;
  let finish = (): void => undefined;
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  let enter = (): void => undefined;
  const isEntered = new Promise<void>((resolve) => {
    enter = resolve;
  });
  const graph = defineGraph({ name: "loud", state: defineState({ text: z.string().default("") }) })
    .nodes({
      only: async (_, tools) => {
        emit = (index) => tools.emit("loud", { index, text: "x".repeat(chunkBytes) });
        enter();
        await finished;
        return {};
      },
    })
    .edges({ [START]: "only", only: END });
  return { graph, isEntered, emit: (index: number) => emit?.(index), finish: () => finish() };
}

/** Bytes in use after some garbage collections, or after the first one that leaves no more than the limit. */
async function measureMemory({ turns, limit = 0 }: { readonly turns: number; readonly limit?: number }) {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc");
  let least = Number.POSITIVE_INFINITY;
  for (let turn = 0; turn < turns && least > limit; turn++) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    least = Math.min(least, heapUsed + arrayBuffers);
  }
  return least;
}

test("connections that take no bytes hold no more than their limit and are cut, and the others receive every event [V115, SS31]", async () => {
  const { graph, isEntered, emit, finish } = createLoudGraph();
  const { server, send, clock } = await createTestServer({ graphs: [graph], limits: { streamsPerCaller: 3 } });
  const { url } = await server.listen({ port: 0, handleSigterm: false });
  await send("/api/threads/t/runs", { body: { graph: "loud", input: {} } });
  await clock.until(isEntered);
  const events = `${url}/api/threads/t/events`;
  const open = (as: "ann" | "amy") => fetch(events, { headers: { authorization: `Bearer ${testTokens[as]}` } });
  await Promise.all(Array.from({ length: 3 }, () => openSilentReader(events, testTokens.ann)));
  const hasFreeStream = async (): Promise<boolean> => {
    const response = await open("ann");
    await response.body?.cancel();
    return response.status === 200;
  };
  while (await hasFreeStream());
  const responses = [await open("amy"), await open("amy")];
  const good = responses.flatMap(({ body }) => (body === null ? [] : [new CountingReader(body, "custom")]));
  const limit = (await measureMemory({ turns: 2 })) + (loudEvents * chunkBytes) / 2;
  // Each event goes out when the good readers have the one before: they are as fast as the events.
  for (let sent = 1; sent <= loudEvents; sent++) {
    emit(sent);
    await Promise.all(good.map((reader) => reader.waitFor(sent)));
  }
  expect(await measureMemory({ turns: 10, limit })).toBeLessThan(limit);
  let beats = 0;
  for (; beats < maxBeats && !(await hasFreeStream()); beats++) await clock.advance(5_000);
  expect(beats).toBeLessThan(maxBeats);
  expect(good.map(({ count, hasEnded }) => [count, hasEnded])).toEqual([
    [loudEvents, false],
    [loudEvents, false],
  ]);
  finish();
  await clock.waitUntilIdle();
});

/** Route with a stream of large lines for each name, as many as the test allows. */
function createLoudRoute() {
  const left: string[] = [];
  const allowed = new Map<string, number>([["dead", loudEvents]]);
  const wake: (() => void)[] = [];
  const allow = (name: string, count: number): void => {
    allowed.set(name, count);
    for (const resolve of wake.splice(0)) resolve();
  };
  const wait = (): Promise<void> => new Promise((resolve) => wake.push(resolve));
  const route: Route = {
    method: "GET",
    path: "/loud/:name",
    action: "thread.read",
    isRead: true,
    handle: ({ stream, params: { name = "" } }) =>
      stream(async function* (signal) {
        const leave = (): void => {
          left.push(name);
          allow(name, 0);
        };
        signal.addEventListener("abort", leave, { once: true });
        for (let sent = 0; !signal.aborted; sent++) {
          while (sent >= (allowed.get(name) ?? 0) && !signal.aborted) await wait();
          if (!signal.aborted) yield { event: "loud", data: "x".repeat(chunkBytes) };
        }
      }),
  };
  const waitForLeft = async (name: string): Promise<void> => {
    while (!left.includes(name)) await wait();
  };
  return { route, left, allow, waitForLeft };
}

test("a dead connection is cut after half a minute, a half-open one at once, and one that reads is not [V115]", async () => {
  const { route, left, allow, waitForLeft } = createLoudRoute();
  const { server, clock } = createBareServer({ routes: [route] });
  const { url } = await server.listen({ port: 0, handleSigterm: false });
  await openSilentReader(`${url}/bare/loud/dead`, bareToken);
  const halfOpen = await openSilentReader(`${url}/bare/loud/half-open`, bareToken);
  halfOpen.end();
  await waitForLeft("half-open");
  const leave = new AbortController();
  const init = { headers: { authorization: `Bearer ${bareToken}` }, signal: leave.signal };
  const { body } = await fetch(`${url}/bare/loud/reader`, init);
  if (body === null) throw new Error("the response has no body");
  const reader = new CountingReader(body, "loud");
  let beats = 0;
  for (; !left.includes("dead") && beats < maxBeats; beats++) {
    allow("reader", beats + 1);
    await reader.waitFor(beats + 1);
    await clock.advance(5_000);
  }
  expect(left).toEqual(["half-open", "dead"]);
  expect(beats).toBeGreaterThan(6);
  expect([reader.count, reader.hasEnded]).toEqual([beats, false]);
  leave.abort();
  await reader.ended;
});
