// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"regexp"
	"slices"
	"strconv"
	"time"
	_ "time/tzdata" // zones are the same wherever this runs
)

const (
	minWindowOrRotationPeriod = 30 * time.Minute
	maxMaintenanceWindow      = 6 * time.Hour
	maxRotationPeriod         = 90 * 24 * time.Hour
)

// checkShootWindow checks the time window of maintenance.
func checkShootWindow(r *findingCollector, s shoot) {
	window := s.spec.lookup("maintenance", "timeWindow")
	if !window.lookup("begin").isSet() || !window.lookup("end").isSet() {
		return
	}
	begin, ok := parseTimeOfDay(window.lookup("begin").text())
	end, okEnd := parseTimeOfDay(window.lookup("end").text())
	if !ok || !okEnd {
		wrong := window.lookup("begin")
		if ok {
			wrong = window.lookup("end")
		}
		r.add(wrong.withPath(window.lookup("begin/end").path), TypeInvalid, "must be times of day such as 220000+0100 and 230000+0100")
		return
	}
	length := end - begin
	if length < 0 {
		length += 24 * time.Hour
	}
	if length > maxMaintenanceWindow || length < minWindowOrRotationPeriod {
		r.add(window, TypeInvalid, "is %s long, but must be from %s to %s long", length, minWindowOrRotationPeriod, maxMaintenanceWindow)
	}
}

var timeOfDayPattern = regexp.MustCompile(`^([01][0-9]|2[0-3])([0-5][0-9])([0-5][0-9])([+-])([01][0-9])([0-5][0-9])$`)

// parseTimeOfDay returns the time since midnight UTC of a text such as 220000+0100.
func parseTimeOfDay(text string) (time.Duration, bool) {
	parts := timeOfDayPattern.FindStringSubmatch(text)
	if parts == nil {
		return 0, false
	}
	number := func(i int) time.Duration {
		value, _ := strconv.Atoi(parts[i]) // the form has digits only
		return time.Duration(value)
	}
	clock := number(1)*time.Hour + number(2)*time.Minute + number(3)*time.Second
	offset := number(5)*time.Hour + number(6)*time.Minute
	if parts[4] == "+" {
		offset = -offset
	}
	const day = 24 * time.Hour
	return ((clock+offset)%day + day) % day, true
}

// checkShootRotation checks the periods of automatic credential rotation.
func checkShootRotation(r *findingCollector, s shoot) {
	credentials := s.spec.lookup("maintenance", "autoRotation", "credentials")
	for _, kind := range []string{"observability", "sshKeypair", "etcdEncryptionKey"} {
		if kind == "sshKeypair" && len(s.workers) == 0 {
			continue
		}
		period := credentials.lookup(kind, "rotationPeriod")
		if duration, ok := period.duration(); ok && duration != 0 && (duration < minWindowOrRotationPeriod || duration > maxRotationPeriod) {
			r.add(period, TypeInvalid, "%s is out of range: it must be 0, which turns rotation off, or between 30m and 2160h (90 days)", period.text())
		}
	}
}

// checkShootKeyRotation requires the rotation that AES-GCM needs: a key is unsafe after too many
// writes. A new Shoot rotates its key by default, so only a rotation that is turned off is wrong.
func checkShootKeyRotation(r *findingCollector, s shoot) {
	provider := s.spec.lookup("kubernetes", "kubeAPIServer", "encryptionConfig", "provider", "type")
	rotation := s.spec.lookup("maintenance", "autoRotation", "credentials", "etcdEncryptionKey")
	period, given := rotation.lookup("rotationPeriod").duration()
	if provider.text() == "aesgcm" && given && period == 0 {
		r.add(provider, TypeForbidden, "aesgcm needs a key that is rotated; spec.maintenance.autoRotation.credentials.etcdEncryptionKey.rotationPeriod must not be 0")
	}
}

// checkShootHibernation checks the schedules of hibernation.
func checkShootHibernation(r *findingCollector, s shoot) {
	if controlPlanePool(s.workers).isSet() {
		return // shoot/self-hosted refuses it as a whole
	}
	if enabled := s.spec.lookup("hibernation", "enabled"); enabled.isTrue() {
		for _, op := range readOperations(s.lookup("metadata", "annotations"), keyMaintenanceOperation).names {
			if slices.Contains(hibernationBlockedOperations[:], op) {
				r.add(enabled, TypeForbidden, "the cluster cannot be hibernated, because the annotation %s asks for %q", keyMaintenanceOperation, op)
			}
		}
	}
	seen := map[string]string{}
	for _, schedule := range s.spec.lookup("hibernation", "schedules").items() {
		if !schedule.lookup("start").isSet() && !schedule.lookup("end").isSet() {
			r.add(schedule.lookup("start/end"), TypeRequired, "must have start or end, or both")
		}
		for _, name := range []string{"start", "end"} {
			field := schedule.lookup(name)
			if !field.isSet() {
				continue
			}
			first, double := seen[field.text()]
			switch problem := CronProblem(field.text()); {
			case problem != "":
				r.add(field, TypeInvalid, "%q %s", field.text(), problem)
			case double:
				r.add(field, TypeDuplicate, "the schedule %q is already given as %s", field.text(), first)
			default:
				seen[field.text()] = field.path
			}
		}
		if location := schedule.lookup("location"); location.isSet() {
			if _, err := time.LoadLocation(location.text()); err != nil {
				r.add(location, TypeInvalid, "%q is not a time zone, such as Europe/Berlin", location.text())
			}
		}
	}
}
