/** B23 stream and B23 silent: CPU per text event that a server streams, and heap per open silent stream. */
import type { Case, Contender, Work } from "../case.ts";
import { measureHeap } from "../collector.ts";
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
  /** Heap of the first round: the sockets of an earlier round are freed only later. */
  let heapBytes: number | undefined;
  let opened: { readonly server: StreamServer; readonly readers: StreamReaders } | undefined;
  const close = async (): Promise<void> => {
    await opened?.readers.close();
    await opened?.server.close();
    opened = undefined;
  };
  return {
    run: async (size) => {
      await close();
      const threads = Array.from({ length: size }, (_, index) => `t${index}`);
      const first = Array.from({ length: warmUpStreams }, (_, index) => `first${index}`);
      const server = await open([...threads, ...first]);
      const openReaders = (streamed: readonly string[]): Promise<StreamReaders> =>
        openStreamReaders(server.port, streamed.map(server.getPath), server.marker);
      await (await openReaders(first)).close();
      const before = heapBytes === undefined ? await measureHeap() : 0;
      let readers: StreamReaders | undefined;
      const sample = await measureTime(async () => {
        readers = await openReaders(threads);
      });
      if (readers === undefined) throw new Error("the readers were not opened");
      opened = { server, readers };
      heapBytes ??= (await measureHeap()) - before;
      return sample;
    },
    getBytes: () => heapBytes,
    getNotes: () => "heap for each stream",
    close: async () => {
      await close();
      return undefined;
    },
  };
}
