/** B23 stream and B23 silent: CPU per text event that a server streams, and heap per open silent stream. */
import type { Case, Contender, Work } from "../case.ts";
import { measureSettledHeap } from "../collector.ts";
import { measureTime } from "../measure.ts";
import { openBareServer, openStatewrightServer, type StreamServer } from "../server/open-servers.ts";
import { openStreamReaders, type StreamReaders } from "../server/stream-readers.ts";

const streamedThreads = 20;

export function createServerStreamCase(): Case {
  return {
    id: "B23 stream",
    title: `text event of a run, streamed over HTTP to its reader, ${streamedThreads} runs at a time`,
    unit: "event",
    budget: { cpuUs: 30, text: "at most 3 times a bare writer of server-sent events" },
    size: 20_000,
    steady: true,
    contenders: [
      { name: "statewright", role: "ours", open: () => openStreamed(openStatewrightServer) },
      { name: "bare writer", role: "limit", open: () => openStreamed(openBareServer) },
    ],
    checks: [{ subject: "statewright", baseline: "bare writer", measure: "cpu", max: 3 }],
  };
}

async function openStreamed(open: (threads: readonly string[]) => Promise<StreamServer>): Promise<Work> {
  const threads = Array.from({ length: streamedThreads }, (_, index) => `t${index}`);
  const server = await open(threads);
  const readers = await openStreamReaders(server.port, threads.map(server.getPath), server.marker);
  let events = 0;
  return {
    run: async (size) => {
      const words = Math.ceil(size / streamedThreads);
      events += words * streamedThreads;
      return await measureTime(async () => {
        const received = readers.waitForFrames(events);
        await server.stream(threads, words);
        await received;
      });
    },
    close: async () => {
      await readers.close();
      await server.close();
      return undefined;
    },
  };
}

export function createSilentStreamCase(): Case {
  return {
    id: "B23 silent",
    title: "open stream of a silent thread of its own, one of 5,000",
    unit: "stream",
    budget: { cpuUs: 500, text: "at most 20 KB heap for each stream; 5,000 open streams" },
    size: 5_000,
    steady: true,
    contenders: [
      createSilentContender("statewright", "ours", openStatewrightServer),
      createSilentContender("bare writer", "limit", openBareServer),
    ],
    checks: [{ subject: "statewright", baseline: "bare writer", measure: "bytes", max: 4 }],
    amounts: [{ subject: "statewright", measure: "bytes", max: 20_000 }],
  };
}

function createSilentContender(
  name: string,
  role: Contender["role"],
  open: (threads: readonly string[]) => Promise<StreamServer>,
): Contender {
  return { name, role, open: () => openSilent(open) };
}

/** Streams that load and compile the code before the measurement. */
const warmUpStreams = 100;

/** Opens all streams in each round, and measures the heap before and after the first. */
function openSilent(open: (threads: readonly string[]) => Promise<StreamServer>): Work {
  let heapBytes: number | undefined;
  let server: StreamServer | undefined;
  let readers: StreamReaders | undefined;
  return {
    run: async (size) => {
      await readers?.close();
      const threads = Array.from({ length: size }, (_, index) => `t${index}`);
      server ??= await openWarm(open, threads);
      const { port, getPath, marker } = server;
      const before = heapBytes === undefined ? await measureSettledHeap(size) : 0;
      const sample = await measureTime(async () => {
        readers = await openStreamReaders(port, threads.map(getPath), marker);
      });
      heapBytes ??= (await measureSettledHeap(size)) - before;
      return sample;
    },
    getBytes: () => heapBytes,
    getNotes: () => "heap for each stream",
    close: async () => {
      await readers?.close();
      await server?.close();
      return undefined;
    },
  };
}

/** Opens a server whose code was loaded and compiled by a few streams. */
async function openWarm(
  open: (threads: readonly string[]) => Promise<StreamServer>,
  threads: readonly string[],
): Promise<StreamServer> {
  const first = Array.from({ length: warmUpStreams }, (_, index) => `first${index}`);
  const server = await open([...threads, ...first]);
  const readers = await openStreamReaders(server.port, first.map(server.getPath), server.marker);
  await readers.close();
  return server;
}
