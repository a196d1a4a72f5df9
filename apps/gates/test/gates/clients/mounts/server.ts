/** Server that the hosts mount: with a route that echoes JSON, and a silent stream. */
import { defineGraph, defineState, END, engine, memoryStore, START } from "@statewright/core";
import { type Protocol, serve } from "@statewright/server";
import * as z from "zod";

const Empty = defineState({ text: z.string().default("") });
const graph = defineGraph({ name: "empty", state: Empty })
  .nodes({ only: () => ({}) })
  .edges({ [START]: "only", only: END });

const probe: Protocol = {
  name: "probe",
  prefix: "/probe",
  formatProblem: ({ status, code, detail, headers = {} }) => Response.json({ code, detail }, { status, headers }),
  routes: [
    {
      method: "POST",
      path: "/echo",
      action: "thread.read",
      isRead: true,
      handle: async ({ readJson, base }) => {
        const { text } = await readJson(z.strictObject({ text: z.string() }));
        return Response.json({ text, base });
      },
    },
    {
      method: "GET",
      path: "/silent",
      action: "thread.read",
      isRead: true,
      handle: ({ stream }) =>
        stream(async function* (signal) {
          await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
          console.log("left");
          yield* [];
        }),
    },
  ],
};

const { BASE_PATH: basePath = "/agents" } = process.env;
const host = engine({ store: memoryStore(), graphs: [graph] });

/** Server below `/agents`, or below the path of the environment. */
export const server = serve({
  engine: host,
  access: { token: "a-token-of-the-gate-0123456789" },
  cors: { origins: ["https://page.example"] },
  protocols: [probe],
  basePath,
});

// The build of Next loads this module as well, and must run nothing.
if (process.env["NEXT_PHASE"] !== "phase-production-build") {
  await host.start();
  console.log("engine started");
}
