/** Small protocol over the acts of a caller: starts runs, reads threads, answers and streams. */
import * as z from "zod";
import { formatProblem } from "../../src/http/problem-response.ts";
import type { Protocol } from "../../src/http/route.ts";

const start = z.strictObject({ graph: z.string(), texts: z.array(z.string()) });
const answers = z.strictObject({ answers: z.record(z.string(), z.unknown()) });

export const echoProtocol: Protocol = {
  name: "echo",
  prefix: "/echo",
  formatProblem,
  routes: [
    {
      method: "GET",
      path: "/threads/:thread",
      action: "thread.read",
      isRead: true,
      handle: async ({ service, params }) => Response.json(await service.getState(params["thread"] ?? "")),
    },
    {
      method: "GET",
      path: "/threads",
      action: "thread.read",
      isRead: true,
      handle: async ({ service }) => Response.json(await service.listThreads({})),
    },
    {
      method: "POST",
      path: "/threads/:thread/runs",
      action: "run.start",
      isRead: false,
      handle: async ({ service, params, readJson }) => {
        const { graph, texts } = await readJson(start);
        const messages = texts.map((text, index) => ({
          id: `m${index}`,
          role: "user",
          content: [{ type: "text", text }],
        }));
        const input = graph === "assistant" ? { messages } : { draft: texts.join(" ") };
        const { run } = await service.startRun(params["thread"] ?? "", { graph, input });
        const row = await service.waitForRun(run.id, new AbortController().signal);
        return Response.json(row);
      },
    },
    {
      method: "POST",
      path: "/threads/:thread/answers",
      action: "run.answer",
      isRead: false,
      handle: async ({ service, params, readJson }) => {
        const { run } = await service.answer(params["thread"] ?? "", await readJson(answers));
        return Response.json(await service.waitForRun(run.id, new AbortController().signal));
      },
    },
    {
      method: "GET",
      path: "/threads/:thread/events",
      action: "thread.read",
      isRead: true,
      handle: ({ service, params, query, stream }) =>
        stream(async function* (signal) {
          const end = query.get("end") === "idle" ? "idle" : "never";
          const events = await service.streamEvents(params["thread"] ?? "", { end, signal });
          for await (const event of events) yield { event: event.type, data: event };
        }),
    },
  ],
};
