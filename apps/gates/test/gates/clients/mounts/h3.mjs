// @boundaries-ignore installed by the gate
import { H3, serve } from "h3";
import { server } from "./server.mjs";

const app = new H3();
app.all("/agents/**", (event) => server.fetch(event.req));
serve(app, { port: 3000, hostname: "127.0.0.1" });
