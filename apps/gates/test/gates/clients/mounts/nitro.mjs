// routes/agents/[...path].js
// @boundaries-ignore installed by the gate
import { defineHandler } from "nitro/h3";
import { server } from "../../lib/server.mjs";

export default defineHandler((event) => server.fetch(event.req));
