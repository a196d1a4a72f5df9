/** B23 list and B23 run: requests to a server for a page of threads, and for a run, beside servers of peers. */
import type { Case } from "../case.ts";
import type { Peers } from "../peers/langgraph.ts";
import { type MeasuredRequest, openApi } from "../server/open-api.ts";
import { concurrency } from "../server/request-loop.ts";

const listedThreads = 1_000;

/** Maximum of the CPU and of the wall time beside each peer: a bench run on a busy machine differs by a quarter. */
const maxRatio = 1.25;

export function createThreadListCase({ servers }: Pick<Peers, "servers">): Case {
  return {
    id: "B23 list",
    title: `list of the newest 50 of ${listedThreads.toLocaleString("en")} threads over HTTP, ${concurrency} requests at a time`,
    unit: "request",
    budget: { cpuUs: 500, text: "less than the LangGraph dev server and the Mastra server" },
    size: 400,
    steady: true,
    contenders: listContenders(servers, { name: "listThreads", threads: listedThreads }),
    checks: createChecks(servers),
  };
}

export function createServedRunCase({ servers }: Pick<Peers, "servers">): Case {
  return {
    id: "B23 run",
    title: `run of three nodes on a new thread over HTTP, answered at its end, ${concurrency} requests at a time`,
    unit: "request",
    budget: { cpuUs: 2_000, text: "less than the LangGraph dev server and the Mastra server" },
    disk: true,
    size: 200,
    steady: true,
    contenders: listContenders(servers, { name: "run", threads: 0 }),
    checks: createChecks(servers),
  };
}

function listContenders(servers: Peers["servers"], request: MeasuredRequest): Case["contenders"] {
  const ours = new URL("../server/statewright-api.ts", import.meta.url).href;
  const bare = new URL("../server/bare-api.ts", import.meta.url).href;
  return [
    { name: "statewright", role: "ours", ownProcesses: true, open: () => openApi(ours, request) },
    ...servers.map(
      ({ name, entry }) => ({ name, role: "peer", ownProcesses: true, open: () => openApi(entry, request) }) as const,
    ),
    { name: "bare server", role: "limit", ownProcesses: true, open: () => openApi(bare, request) },
  ];
}

function createChecks(servers: Peers["servers"]): NonNullable<Case["checks"]> {
  return servers.flatMap(({ name }) =>
    (["cpu", "wall"] as const).map((measure) => ({ subject: "statewright", baseline: name, measure, max: maxRatio })),
  );
}
