/** Routes of the protocol that this server refuses, with the reason. Clients repeat none of these answers. */
import type { HttpMethod, Route } from "../../http/route.ts";
import { createRefusal } from "../create-problem.ts";

const assistants = "Assistants are the graphs of the server. Change the graphs in its program.";
const crons = "This protocol has no schedules here. Use the schedules of the native API.";

interface Refused {
  readonly method: HttpMethod;
  readonly paths: readonly string[];
  readonly status: 405 | 422;
  readonly reason: string;
}

const refused: readonly Refused[] = [
  {
    method: "POST",
    paths: ["/assistants", "/assistants/:assistant/versions", "/assistants/:assistant/latest"],
    status: 405,
    reason: assistants,
  },
  { method: "PATCH", paths: ["/assistants/:assistant"], status: 405, reason: assistants },
  { method: "DELETE", paths: ["/assistants/:assistant"], status: 405, reason: assistants },
  {
    method: "POST",
    paths: ["/runs/crons", "/threads/:thread/runs/crons", "/runs/crons/search", "/runs/crons/count"],
    status: 422,
    reason: crons,
  },
  { method: "PATCH", paths: ["/runs/crons/:cron"], status: 422, reason: crons },
  { method: "DELETE", paths: ["/runs/crons/:cron"], status: 422, reason: crons },
  {
    method: "POST",
    paths: ["/runs/batch"],
    status: 422,
    reason: "Runs are started one by one. Use POST /runs for each.",
  },
];

/** Routes that answer with a refusal. */
export const refusedRoutes: readonly Route[] = refused.flatMap(({ method, paths, status, reason }) =>
  paths.map((path): Route => {
    const handle = (): never => {
      throw createRefusal(reason, status);
    };
    return { method, path, action: "graph.read", isRead: true, handle };
  }),
);
