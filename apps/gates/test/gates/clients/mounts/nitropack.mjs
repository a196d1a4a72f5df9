// routes/agents/[...path].js
// @boundaries-ignore installed by the gate
import { getRequestListener } from "@hono/node-server";
// @boundaries-ignore installed by the gate
import { fromNodeMiddleware } from "h3";
import { server } from "../../lib/server.mjs";

export default fromNodeMiddleware(getRequestListener(server.fetch));
